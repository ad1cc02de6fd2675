# SPDX-License-Identifier: Apache-2.0

"""Parser that converts stored messages of Nova into requests."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
from typing import Any
import uuid as uuid_module

from nova_fairness import exception
from nova_fairness.cluster.messages import demand as demand_module
from nova_fairness.cluster.messages import fields
from nova_fairness.cluster.messages import times as times_module
from nova_fairness.model import cast as cast_module
from nova_fairness.model import envelope
from nova_fairness.model import eviction
from nova_fairness.model import plain
from nova_fairness.model import request

MARK = 'fairness:preemptible'
"""Key in metadata, scheduler hints and extra specs that marks a server as
preemptible.
"""

ACTION = 'fairness:preemption_action'
"""Key with the first action of an eviction that makes room for a request."""

_LONGEST_NAME = 255
"""Largest length of a server's name in Nova, in characters."""

_DIFFERENT_SERVERS = (
    'all servers of one build must have the same owner, demand, group,'
    ' priority class and action'
)
_VERSION = '1.'
_OFFLOADED = 'shelved_offloaded'
_NOWHERE = 'nova-fairness-nowhere'
_NOTHING = request.Demand(())


@dataclasses.dataclass(frozen=True)
class PreemptibleRules:
    """Rules that decide which requests are preemptible.

    Flavors whose extra specs have the mark are always preemptible, because
    operators set them.

    :ivar marks: whether marks by users count.
    :ivar projects: projects whose requests are all preemptible.
    :ivar choices: actions that users or flavors may choose.
    """

    marks: bool = False
    projects: frozenset[str] = frozenset()
    choices: frozenset[eviction.EvictionAction] = frozenset()

    @property
    def needs_server_fields(self) -> bool:
        """Return whether the rules need fields of servers."""
        return self.marks or bool(self.choices)

    def priority_class(
        self,
        spec: Mapping[str, Any],
        server: Mapping[str, Any],
        project: str,
    ) -> request.Band:
        """Return the priority class of a server.

        :param spec: fields of its ``RequestSpec``.
        :param server: fields of its ``Instance``, if they are known.
        :raises Unreadable: if the form of the fields is unknown.
        """
        flavor = fields.object_fields(spec.get('flavor'), 'Flavor')
        extra = fields.mapping_field(flavor, 'extra_specs').get(MARK)
        is_named = project in self.projects or fields.means_yes(extra)
        is_marked = self.marks and any(
            fields.means_yes(each)
            for each in _values_of_key(spec, server, MARK)
        )
        if is_named or is_marked:
            return request.Band.PREEMPTIBLE
        return request.Band.NORMAL

    def preemption_action(
        self, spec: Mapping[str, Any], server: Mapping[str, Any]
    ) -> eviction.EvictionAction | None:
        """Return the first action of Nova if the server has to make room.

        Metadata of the server come before hints, and hints before its flavor.

        :returns: ``None`` if none of them names an allowed action.
        :raises Unreadable: if the form of the fields is unknown.
        """
        may = {each.value: each for each in self.choices}
        for said in _values_of_key(spec, server, ACTION):
            if said in may:
                return may[said]
        return None


NONE_IS = PreemptibleRules()
"""Rules of a service without configured options: all requests are normal."""


def _values_of_key(
    spec: Mapping[str, Any], server: Mapping[str, Any], key: str
) -> list[str]:
    """Return the values of one key in metadata, hints and extra specs."""
    flavor = fields.object_fields(spec.get('flavor'), 'Flavor')
    told: list[object] = []
    for holder, name in (
        (server, 'metadata'),
        (spec, 'scheduler_hints'),
        (flavor, 'extra_specs'),
    ):
        value = fields.mapping_field(holder, name).get(key)
        # Nova turns the value of a hint into a list.
        told += value if isinstance(value, list) else [value]
    return [str(each) for each in told]


def no_limits(_project: str, _user: str) -> times_module.RequestLimits:
    """Return limits that allow any wait and run time, for any user."""
    return times_module.RequestLimits()


def parse_message(
    cast: cast_module.Cast,
    limits_of_user: times_module.Granted = no_limits,
    preemptible: PreemptibleRules = NONE_IS,
) -> request.Request:
    """Convert a message into a request.

    The same message always gives the same request.

    :param cast: message with one of the methods of :class:`request.Origin`.
    :param limits_of_user: returns limits of wait and run time.
    :param preemptible: rules that decide which requests are preemptible.
    :raises Unreadable: if the form of the message is unknown; the error
        contains no content of the message.
    """
    message = envelope.parse_message(cast.body)
    if not str(message.get('version')).startswith(_VERSION):
        raise exception.Unreadable(
            f'a message to conductor must have the version {_VERSION}x'
        )
    arguments = fields.mapping_field(message, 'args')
    if message.get('method') == request.Origin.BUILD.value:
        return _parse_build(cast, arguments, limits_of_user, preemptible)
    if message.get('method') == request.Origin.UNSHELVE.value:
        return _parse_unshelve(cast, arguments, limits_of_user, preemptible)
    raise exception.Unreadable('a message must be a build or an unshelve')


def placeholder_request(cast: cast_module.Cast) -> request.Request:
    """Return a request that represents an unreadable message.

    It has the fields that can be read, no demand, and one server that does not
    exist.

    :param cast: message for which :func:`parse_message` raises ``Unreadable``.
    """
    name = str(uuid_module.uuid5(uuid_module.NAMESPACE_OID, cast.uuid))
    origin = request.Origin.BUILD
    project = user = ''
    try:
        message = envelope.parse_message(cast.body)
        project = fields.text_field(message, '_context_project_id')
        user = fields.text_field(message, '_context_user_id')
    except exception.Unreadable:
        pass
    if cast.method == request.Origin.UNSHELVE.value:
        origin = request.Origin.UNSHELVE
    return request.Request(
        name, project, user, (name,), _NOTHING, cast.received_at, origin
    )


def user_token(cast: cast_module.Cast) -> str:
    """Return the token of the user; '' if the message has none, or cannot be
    read.
    """
    try:
        found = envelope.parse_message(cast.body).get('_context_auth_token')
    except exception.Unreadable:
        return ''
    return found if isinstance(found, str) else ''


def with_nonexistent_host(cast: cast_module.Cast) -> cast_module.Cast:
    """Return the same build for a host that does not exist.

    If Nova receives a build of deleted servers, it deletes its own records of
    them. If it could choose hosts, it would first claim room there, and a
    request that is sent at the same time would lack this room.

    :param cast: message; unchanged if it is no build, or cannot be read.
    """
    if cast.method != request.Origin.BUILD.value:
        return cast
    return _with_changes(cast, lambda _: {'force_hosts': [_NOWHERE]})


def with_excluded_hosts(
    cast: cast_module.Cast, hosts: Collection[str]
) -> cast_module.Cast:
    """Return the same request with hosts that Nova must not choose.

    Its servers cannot start on these hosts, even if they have room. Nova still
    chooses among all other hosts, also after a failed build.

    :param cast: message; unchanged if it cannot be read.
    :param hosts: names of hosts.
    """
    if not hosts:
        return cast

    def excluded_hosts(spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return the changed field of a request specification."""
        known = spec.get('ignore_hosts') or []
        return {'ignore_hosts': sorted({*known, *hosts})}

    return _with_changes(cast, excluded_hosts)


def _with_changes(
    cast: cast_module.Cast,
    change: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> cast_module.Cast:
    """Return a copy of a message with changes in its request
    specifications.
    """
    try:
        message = envelope.parse_message(cast.body)
        arguments = fields.mapping_field(message, 'args')
        specs: list[Any] = [arguments.get('request_spec')]
        if cast.method == request.Origin.BUILD.value:
            specs = fields.list_field(arguments, 'request_specs')
        for each in specs:
            spec = fields.object_fields(each, 'RequestSpec')
            each['nova_object.data'] = {**spec, **change(spec)}
    except exception.Unreadable:
        return cast
    body = envelope.with_message(cast.body, message)
    return dataclasses.replace(cast, body=body)


def _parse_build(
    cast: cast_module.Cast,
    arguments: Mapping[str, Any],
    limits_of_user: times_module.Granted,
    preemptible: PreemptibleRules,
) -> request.Request:
    specs = [
        fields.object_fields(each, 'RequestSpec')
        for each in fields.list_field(arguments, 'request_specs')
    ]
    if not specs:
        raise exception.Unreadable('a build must have a request_spec')
    servers = tuple(fields.uuid_field(each, 'instance_uuid') for each in specs)
    if len(set(servers)) < len(servers):
        raise exception.Unreadable('a build names a server twice')
    owners = {_owner_ids(each) for each in specs}
    builds = _readable_servers(arguments, preemptible.needs_server_fields)
    parts = {
        (
            _parse_strict_group(each),
            _demand_of_spec(each),
            preemptible.priority_class(
                each, builds.get(server, {}), _owner_ids(each)[0]
            ),
            preemptible.preemption_action(each, builds.get(server, {})),
        )
        for each, server in zip(specs, servers, strict=True)
    }
    if len(parts) > 1 or len(owners) > 1:
        raise exception.Unreadable(_DIFFERENT_SERVERS)
    (group, demand, band, leaves_by) = parts.pop()
    project, user = owners.pop()
    requested = times_module.requested_limits(arguments)
    may = limits_of_user(project, user).shorter_of_both(requested)
    longest_s = may.longest_wait_s
    return request.Request(
        uuid=servers[0],
        project=project,
        user=user,
        servers=servers,
        demand=demand,
        asked_at=cast.received_at,
        group=group,
        expires_at=None if longest_s is None else cast.received_at + longest_s,
        band=band,
        leaves_by=leaves_by,
        time_limit_s=may.time_limit_s,
        flavor=_flavor_name(specs[0]),
        names=_server_names(builds.get(each, {}) for each in servers),
    )


def _readable_servers(
    arguments: Mapping[str, Any], is_required: bool
) -> dict[str, Mapping[str, Any]]:
    """Return the fields of the servers that a build names, by UUID.

    :param is_required: whether the request depends on these fields.
    :raises Unreadable: if it does, and the form of the fields is unknown.
    """
    try:
        return _server_fields(arguments)
    except exception.Unreadable:
        if is_required:
            raise
        return {}


def _server_names(servers: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the names of servers, from their fields; empty if no server has a
    name.
    """
    found = tuple(
        plain.line(str(each.get('display_name') or ''))[:_LONGEST_NAME]
        for each in servers
    )
    return found if any(found) else ()


def _server_fields(
    arguments: Mapping[str, Any],
) -> dict[str, Mapping[str, Any]]:
    """Return the fields of the servers that a build names, by UUID."""
    builds = [
        fields.object_fields(each, 'BuildRequest')
        for each in fields.list_field(arguments, 'build_requests')
    ]
    found = [
        fields.object_fields(each['instance'], 'Instance')
        for each in builds
        if each.get('instance') is not None
    ]
    return {fields.text_field(each, 'uuid'): each for each in found}


def _demand_of_spec(spec: Mapping[str, Any]) -> request.Demand:
    """Return the demand of a build, in which a forced host applies."""
    return demand_module.parse_demand(spec, is_host_forced=True)


def _parse_unshelve(
    cast: cast_module.Cast,
    arguments: Mapping[str, Any],
    limits_of_user: times_module.Granted,
    preemptible: PreemptibleRules,
) -> request.Request:
    """Return the request of an unshelve message."""
    # It never expires: Nova cannot cancel an unshelve.
    server = fields.object_fields(arguments.get('instance'), 'Instance')
    uuid = fields.uuid_field(server, 'uuid')
    demand, group, band = _NOTHING, None, request.Band.NORMAL
    leaves_by = limit_s = None
    flavor = ''
    project, user = _owner_ids(server)
    # A server that is still on its host keeps room, priority class and limits.
    if fields.text_field(server, 'vm_state') == _OFFLOADED:
        spec = fields.object_fields(
            arguments.get('request_spec'), 'RequestSpec'
        )
        # Nova forgets the forced host of an unshelved server.
        demand = demand_module.parse_demand(spec, is_host_forced=False)
        group = _parse_strict_group(spec)
        band = preemptible.priority_class(spec, server, project)
        leaves_by = preemptible.preemption_action(spec, server)
        may = limits_of_user(project, user).shorter_of_both(
            times_module.requested_limits(arguments)
        )
        limit_s = may.time_limit_s
        flavor = _flavor_name(spec)
    # The server's UUID may belong to an earlier request: that of its build.
    own = uuid_module.uuid5(uuid_module.UUID(uuid), cast.uuid)
    return request.Request(
        uuid=str(own),
        project=project,
        user=user,
        servers=(uuid,),
        demand=demand,
        asked_at=cast.received_at,
        origin=request.Origin.UNSHELVE,
        group=group,
        band=band,
        leaves_by=leaves_by,
        time_limit_s=limit_s,
        flavor=flavor,
        names=_server_names([server]),
    )


def _flavor_name(spec: Mapping[str, Any]) -> str:
    """Return the name of the flavor in a request specification."""
    return fields.text_field(
        fields.object_fields(spec.get('flavor'), 'Flavor'), 'name'
    )


def _owner_ids(holder: Mapping[str, Any]) -> tuple[str, str]:
    """Return the IDs of project and user in a request specification or a
    server.
    """
    return (
        fields.required_text_field(holder, 'project_id'),
        fields.text_field(holder, 'user_id'),
    )


def _parse_strict_group(spec: Mapping[str, Any]) -> request.Group | None:
    """Return the server group if its rule is strict; otherwise ``None``."""
    if spec.get('instance_group') is None:
        return None
    group = fields.object_fields(spec['instance_group'], 'InstanceGroup')
    policy = fields.text_field(group, 'policy')
    if policy not in {each.value for each in request.Rule}:
        return None
    rule = request.Rule(policy)
    # Nova writes the rules as a private field.
    rules = fields.mapping_field(group, '_rules')
    most = fields.parse_decimal(rules.get('max_server_per_host', 1))
    if rule is request.Rule.TOGETHER or most is None:
        most = 1
    return request.Group(
        fields.uuid_field(group, 'uuid'), rule, max(1, min(most, 2**31 - 1))
    )
