# SPDX-License-Identifier: Apache-2.0

"""How long it took until every user's part was fair, and stayed so."""

from collections.abc import Iterator

from fairness_lab.results import timeline

TOLERANCE = 0.03
"""Largest distance of a user's part from the max-min part."""

SPAN_S = 10.0
"""A user's part at a moment is that of the seconds before it."""

SPANS_PER_RUN = 12
"""In a short run the span is this part of it."""


def first_within(line: timeline.Timeline) -> dict[str, float | None]:
    """Moment from which each user's part stays within tolerance.

    :returns: seconds since the load began, by user; ``None`` for a user
        whose part was not within tolerance at the end.
    """
    first: dict[str, float | None] = dict.fromkeys(line.users)
    for t_s, distance in _distances(line):
        for user, value in distance.items():
            if value > TOLERANCE:
                first[user] = None
            elif first[user] is None:
                first[user] = t_s
    return first


def _distances(
    line: timeline.Timeline,
) -> Iterator[tuple[float, dict[str, float]]]:
    span_s = min(SPAN_S, line.duration_s / SPANS_PER_RUN)
    step_s = span_s / 5
    count = round((line.duration_s - span_s) / step_s)
    for number in range(count + 1):
        from_s = number * step_s
        to_s = from_s + span_s
        got = timeline.parts(line.by_user(line.got(from_s, to_s)))
        fair = timeline.parts(line.by_user(line.fair(from_s, to_s)))
        yield to_s, {user: abs(got[user] - fair[user]) for user in got}
