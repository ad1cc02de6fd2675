# SPDX-License-Identifier: Apache-2.0

"""Limits of waits and run times, and the limits that users ask for.

A user sets them by metadata of the server, ``fairness:time_limit`` and
``fairness:longest_wait``, or by the scheduler hints ``fairness_time_limit``
and ``fairness_longest_wait``. Nova has accepted the request before they are
read: an unreadable value is ignored, and the request shows the limits in
force.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
from typing import Any

from nova_fairness import exception
from nova_fairness.cluster.messages import fields
from nova_fairness.model import duration

LONGEST_S = 1e9


@dataclasses.dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits in seconds, > 0; ``None`` for no limit.

    :ivar time_limit_s: limit of the run time of servers.
    :ivar longest_wait_s: limit of the wait of a request.
    """

    time_limit_s: float | None = None
    longest_wait_s: float | None = None

    def shorter_of_both(self, other: 'RequestLimits') -> 'RequestLimits':
        """The shorter limits of both."""
        return RequestLimits(
            _shorter_limit(self.time_limit_s, other.time_limit_s),
            _shorter_limit(self.longest_wait_s, other.longest_wait_s),
        )


Granted = Callable[[str, str], RequestLimits]
"""Returns the limits of a user: takes project and user."""


def requested_limits(arguments: Mapping[str, Any]) -> RequestLimits:
    """Limits that the user asked for.

    :param arguments: arguments of a build or an unshelve.
    """
    return RequestLimits(
        _shortest_requested_s(arguments, 'time_limit'),
        _shortest_requested_s(arguments, 'longest_wait'),
    )


def _shortest_requested_s(
    arguments: Mapping[str, Any], name: str
) -> float | None:
    shortest = None
    for text in _requested_texts(arguments, name):
        try:
            wish = duration.seconds(text)
        except ValueError:
            continue
        if 0 < wish <= LONGEST_S:
            shortest = _shorter_limit(shortest, wish)
    return shortest


def _requested_texts(arguments: Mapping[str, Any], name: str) -> Iterator[str]:
    """Values in metadata and hints; unreadable ones are left out."""
    for server in _server_objects(arguments):
        metadata = _dict_or_empty(
            _fields_or_empty(server, 'Instance').get('metadata')
        )
        yield from _only_texts([metadata.get(f'fairness:{name}')])
    for spec in _spec_objects(arguments):
        hints = _dict_or_empty(
            _fields_or_empty(spec, 'RequestSpec').get('scheduler_hints')
        )
        yield from _only_texts(_list_or_empty(hints.get(f'fairness_{name}')))


def _server_objects(arguments: Mapping[str, Any]) -> list[object]:
    built = [
        _fields_or_empty(each, 'BuildRequest').get('instance')
        for each in _list_or_empty(arguments.get('build_requests'))
    ]
    return [*built, arguments.get('instance')]


def _spec_objects(arguments: Mapping[str, Any]) -> list[object]:
    several = _list_or_empty(arguments.get('request_specs'))
    return [*several, arguments.get('request_spec')]


def _fields_or_empty(value: object, name: str) -> Mapping[str, Any]:
    try:
        return fields.object_fields(value, name)
    except exception.Unreadable:
        return {}


def _only_texts(values: Iterable[object]) -> Iterator[str]:
    return (each for each in values if isinstance(each, str))


def _list_or_empty(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _dict_or_empty(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _shorter_limit(one: float | None, other: float | None) -> float | None:
    known = [each for each in (one, other) if each is not None]
    return min(known, default=None)
