# SPDX-License-Identifier: Apache-2.0

"""Pauses between failures and retries."""

FIRST_S = 60.0
"""Pause after the first failure, in seconds."""

LONGEST_S = 3600.0
"""The longest pause, in seconds."""


def pause_s(times: int) -> float:
    """Return the seconds until the next try; they double with each failure.

    :param times: number of failures, >= 1.
    """
    return min(FIRST_S * 2.0 ** min(times - 1, 16), LONGEST_S)


def is_relapse(times: int, over_s: float) -> bool:
    """Check whether a failure continues an earlier series of failures.

    :param times: number of failures, >= 1.
    :param over_s: seconds since the end of the last pause.
    """
    return over_s <= 2 * pause_s(times)
