# SPDX-License-Identifier: Apache-2.0

"""Pauses after which something that failed is tried again."""

FIRST_S = 60.0
"""Pause after which what failed once is tried again."""

LONGEST_S = 3600.0
"""The longest pause."""


def pause_s(times: int) -> float:
    """Seconds until the next try; they double with each failure.

    :param times: failures so far, >= 1.
    """
    return min(FIRST_S * 2.0 ** min(times - 1, 16), LONGEST_S)


def is_relapse(times: int, over_s: float) -> bool:
    """Whether a failure counts as one more of an earlier row.

    :param times: failures so far, >= 1.
    :param over_s: seconds since the last pause ended.
    """
    return over_s <= 2 * pause_s(times)
