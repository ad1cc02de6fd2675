# SPDX-License-Identifier: Apache-2.0

"""Limits of wait and run time, and the limits that users request.

Users set them in metadata of the server, ``fairness:time_limit`` and
``fairness:longest_wait``, or in the scheduler hints ``fairness_time_limit``
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
    """Limits of a request, in seconds, > 0; ``None`` for no limit.

    :ivar time_limit_s: longest run time of its servers.
    :ivar longest_wait_s: longest wait of the request.
    """

    time_limit_s: float | None = None
    longest_wait_s: float | None = None

    def shorter_of_both(self, other: 'RequestLimits') -> 'RequestLimits':
        """Return the shorter one of each pair of limits."""
        return RequestLimits(
            _shorter_limit(self.time_limit_s, other.time_limit_s),
            _shorter_limit(self.longest_wait_s, other.longest_wait_s),
        )


Granted = Callable[[str, str], RequestLimits]
"""Returns the limits of a user; its arguments are project and user."""


def requested_limits(arguments: Mapping[str, Any]) -> RequestLimits:
    """Return the limits that the user requested.

    :param arguments: arguments of a build or an unshelve.
    """
    return RequestLimits(
        _shortest_requested_s(arguments, 'time_limit'),
        _shortest_requested_s(arguments, 'longest_wait'),
    )


def _shortest_requested_s(
    arguments: Mapping[str, Any], name: str
) -> float | None:
    """Return the shortest valid limit in metadata and hints, in seconds;
    ``None`` without one.
    """
    shortest = None
    for text in _requested_texts(arguments, name):
        try:
            wish = duration.parse_seconds(text)
        except ValueError:
            continue
        if 0 < wish <= LONGEST_S:
            shortest = _shorter_limit(shortest, wish)
    return shortest


def _requested_texts(arguments: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yield the texts of a limit in metadata and hints; unreadable ones are
    left out.
    """
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
    """Return the serialized servers in the arguments of a message."""
    built = [
        _fields_or_empty(each, 'BuildRequest').get('instance')
        for each in _list_or_empty(arguments.get('build_requests'))
    ]
    return [*built, arguments.get('instance')]


def _spec_objects(arguments: Mapping[str, Any]) -> list[object]:
    """Return the serialized request specifications in the arguments of a
    message.
    """
    several = _list_or_empty(arguments.get('request_specs'))
    return [*several, arguments.get('request_spec')]


def _fields_or_empty(value: object, name: str) -> Mapping[str, Any]:
    """Return the fields of a serialized object; empty if they cannot be
    read.
    """
    try:
        return fields.object_fields(value, name)
    except exception.Unreadable:
        return {}


def _only_texts(values: Iterable[object]) -> Iterator[str]:
    """Yield the values that are texts."""
    return (each for each in values if isinstance(each, str))


def _list_or_empty(value: object) -> list[object]:
    """Return a list; empty for other values."""
    return value if isinstance(value, list) else []


def _dict_or_empty(value: object) -> Mapping[str, Any]:
    """Return a dictionary; empty for other values."""
    return value if isinstance(value, dict) else {}


def _shorter_limit(one: float | None, other: float | None) -> float | None:
    """Return the shorter one of two limits; ``None`` means no limit."""
    known = [each for each in (one, other) if each is not None]
    return min(known, default=None)
