# SPDX-License-Identifier: Apache-2.0

"""Converts held messages of Nova into requests."""

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
"""Key that names the first action if the server has to make room."""

_LONGEST_NAME = 255
"""Largest length of a server's name in Nova."""

_VERSION = '1.'
_OFFLOADED = 'shelved_offloaded'
_NOWHERE = 'nova-fairness-nowhere'
_NOTHING = request.Demand(())


@dataclasses.dataclass(frozen=True)
class PreemptibleRules:
    """Rules by which requests are preemptible.

    Flavors whose extra specs say so are always preemptible: operators set
    them.

    :ivar marks: whether marks by users count.
    :ivar projects: projects whose requests are all preemptible.
    :ivar choices: actions that users or flavors may choose.
    """

    marks: bool = False
    projects: frozenset[str] = frozenset()
    choices: frozenset[eviction.EvictionAction] = frozenset()

    @property
    def reads_servers(self) -> bool:
        """Whether fields of servers are needed."""
        return self.marks or bool(self.choices)

    def band(
        self,
        spec: Mapping[str, Any],
        server: Mapping[str, Any],
        project: str,
    ) -> request.Band:
        """Priority class of a server.

        :param spec: fields of its ``RequestSpec``.
        :param server: fields of its ``Instance``, if they are known.
        :raises Unreadable: if the form of the fields is unknown.
        """
        flavor = fields.versioned(spec.get('flavor'), 'Flavor')
        extra = fields.mapping(flavor, 'extra_specs').get(MARK)
        is_named = project in self.projects or fields.says_yes(extra)
        is_marked = self.marks and any(
            fields.says_yes(each)
            for each in _marked_values(spec, server, MARK)
        )
        if is_named or is_marked:
            return request.Band.PREEMPTIBLE
        return request.Band.NORMAL

    def action(
        self, spec: Mapping[str, Any], server: Mapping[str, Any]
    ) -> eviction.EvictionAction | None:
        """First action on a server that has to make room.

        Metadata of the server come before hints, and hints before its flavor.

        :returns: ``None`` if none of them names an allowed action.
        :raises Unreadable: if the form of the fields is unknown.
        """
        may = {each.value: each for each in self.choices}
        for said in _marked_values(spec, server, ACTION):
            if said in may:
                return may[said]
        return None


NONE_IS = PreemptibleRules()
"""Rules for operators without options: all requests are normal."""


def _marked_values(
    spec: Mapping[str, Any], server: Mapping[str, Any], key: str
) -> list[str]:
    """Values of one key in metadata, hints and extra specs."""
    flavor = fields.versioned(spec.get('flavor'), 'Flavor')
    told: list[object] = []
    for holder, name in (
        (server, 'metadata'),
        (spec, 'scheduler_hints'),
        (flavor, 'extra_specs'),
    ):
        value = fields.mapping(holder, name).get(key)
        # Nova turns the value of a hint into a list.
        told += value if isinstance(value, list) else [value]
    return [str(each) for each in told]


def unbound(_project: str, _user: str) -> times_module.Times:
    """No limits, for any user."""
    return times_module.Times()


def parse(
    cast: cast_module.Cast,
    times: times_module.Granted = unbound,
    preemptible: PreemptibleRules = NONE_IS,
) -> request.Request:
    """Convert a message into a request.

    The same message always gives the same request.

    :param cast: message with one of the methods of :class:`request.Origin`.
    :param times: returns limits of waits and run times.
    :param preemptible: rules by which requests are preemptible.
    :raises Unreadable: if the form of the message is unknown; the error shows
        no content of the message.
    """
    message = envelope.message(cast.body)
    if not str(message.get('version')).startswith(_VERSION):
        raise exception.Unreadable(
            f'a cast to conductor must be of version {_VERSION}x'
        )
    arguments = fields.mapping(message, 'args')
    if message.get('method') == request.Origin.BUILD.value:
        return _build(cast, arguments, times, preemptible)
    if message.get('method') == request.Origin.UNSHELVE.value:
        return _unshelve(cast, arguments, times, preemptible)
    raise exception.Unreadable('a cast must be a build or an unshelve')


def unread(cast: cast_module.Cast) -> request.Request:
    """Request that stands for an unreadable message.

    It has the fields that can be read, no demand, and one server that does not
    exist.

    :param cast: message for which :func:`parse` raises ``Unreadable``.
    """
    name = str(uuid_module.uuid5(uuid_module.NAMESPACE_OID, cast.uuid))
    origin = request.Origin.BUILD
    project = user = ''
    try:
        message = envelope.message(cast.body)
        project = fields.text(message, '_context_project_id')
        user = fields.text(message, '_context_user_id')
    except exception.Unreadable:
        pass
    if cast.method == request.Origin.UNSHELVE.value:
        origin = request.Origin.UNSHELVE
    return request.Request(
        name, project, user, (name,), _NOTHING, cast.received_at, origin
    )


def token(cast: cast_module.Cast) -> str:
    """Token of the user; '' if the message has none, or is unreadable."""
    try:
        found = envelope.message(cast.body).get('_context_auth_token')
    except exception.Unreadable:
        return ''
    return found if isinstance(found, str) else ''


def nowhere(cast: cast_module.Cast) -> cast_module.Cast:
    """The same build for a host that does not exist.

    If Nova gets a build of deleted servers, it removes what it still knows of
    them. If it could choose hosts, it would first claim room there, and a
    request that is sent at the same time would find none.

    :param cast: message; unchanged if it is no build, or unreadable.
    """
    if cast.method != request.Origin.BUILD.value:
        return cast
    return _with_changes(cast, lambda _: {'force_hosts': [_NOWHERE]})


def without(
    cast: cast_module.Cast, hosts: Collection[str]
) -> cast_module.Cast:
    """The same request, with hosts that Nova must not choose.

    Its servers may not start on these hosts, even if they have room; Nova
    still chooses among all others, also after a failed build.

    :param cast: message; unchanged if it is unreadable.
    :param hosts: names of services.
    """
    if not hosts:
        return cast

    def more(spec: Mapping[str, Any]) -> dict[str, Any]:
        known = spec.get('ignore_hosts') or []
        return {'ignore_hosts': sorted({*known, *hosts})}

    return _with_changes(cast, more)


def _with_changes(
    cast: cast_module.Cast,
    change: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> cast_module.Cast:
    """Copy of a message with changes in its request specifications."""
    try:
        message = envelope.message(cast.body)
        arguments = fields.mapping(message, 'args')
        specs: list[Any] = [arguments.get('request_spec')]
        if cast.method == request.Origin.BUILD.value:
            specs = fields.listed(arguments, 'request_specs')
        for each in specs:
            spec = fields.versioned(each, 'RequestSpec')
            each['nova_object.data'] = {**spec, **change(spec)}
    except exception.Unreadable:
        return cast
    body = envelope.with_message(cast.body, message)
    return dataclasses.replace(cast, body=body)


def _build(
    cast: cast_module.Cast,
    arguments: Mapping[str, Any],
    times: times_module.Granted,
    preemptible: PreemptibleRules,
) -> request.Request:
    specs = [
        fields.versioned(each, 'RequestSpec')
        for each in fields.listed(arguments, 'request_specs')
    ]
    if not specs:
        raise exception.Unreadable('a build must have a request_spec')
    servers = tuple(fields.uuid(each, 'instance_uuid') for each in specs)
    if len(set(servers)) < len(servers):
        raise exception.Unreadable('a build names a server twice')
    owners = {_owner(each) for each in specs}
    builds = _known_servers(arguments, preemptible.reads_servers)
    parts = {
        (
            _group(each),
            _demand(each),
            preemptible.band(each, builds.get(server, {}), _owner(each)[0]),
            preemptible.action(each, builds.get(server, {})),
        )
        for each, server in zip(specs, servers, strict=True)
    }
    if len(parts) > 1 or len(owners) > 1:
        raise exception.Unreadable('servers of one build must be alike')
    (group, demand, band, leaves_by) = parts.pop()
    project, user = owners.pop()
    may = times(project, user).at_most(times_module.wished(arguments))
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
        flavor=_flavor(specs[0]),
        names=_names(builds.get(each, {}) for each in servers),
    )


def _known_servers(
    arguments: Mapping[str, Any], must: bool
) -> dict[str, Mapping[str, Any]]:
    """Fields of the servers that a build names, by UUID.

    :param must: whether the request depends on them.
    :raises Unreadable: if it does, and the form of the fields is unknown.
    """
    try:
        return _servers(arguments)
    except exception.Unreadable:
        if must:
            raise
        return {}


def _names(servers: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Names of servers, from their fields; empty if no server has a name."""
    found = tuple(
        plain.line(str(each.get('display_name') or ''))[:_LONGEST_NAME]
        for each in servers
    )
    return found if any(found) else ()


def _servers(arguments: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Fields of the servers that a build names, by UUID."""
    builds = [
        fields.versioned(each, 'BuildRequest')
        for each in fields.listed(arguments, 'build_requests')
    ]
    found = [
        fields.versioned(each['instance'], 'Instance')
        for each in builds
        if each.get('instance') is not None
    ]
    return {fields.text(each, 'uuid'): each for each in found}


def _demand(spec: Mapping[str, Any]) -> request.Demand:
    return demand_module.of_spec(spec, forced=True)


def _unshelve(
    cast: cast_module.Cast,
    arguments: Mapping[str, Any],
    times: times_module.Granted,
    preemptible: PreemptibleRules,
) -> request.Request:
    # It never expires: Nova cannot cancel an unshelve.
    server = fields.versioned(arguments.get('instance'), 'Instance')
    uuid = fields.uuid(server, 'uuid')
    demand, group, band = _NOTHING, None, request.Band.NORMAL
    leaves_by = limit_s = None
    flavor = ''
    project, user = _owner(server)
    # A server that is still on its host keeps room, priority class and limits.
    if fields.text(server, 'vm_state') == _OFFLOADED:
        spec = fields.versioned(arguments.get('request_spec'), 'RequestSpec')
        # Nova forgets the forced host of an unshelved server.
        demand = demand_module.of_spec(spec, forced=False)
        group = _group(spec)
        band = preemptible.band(spec, server, project)
        leaves_by = preemptible.action(spec, server)
        may = times(project, user).at_most(times_module.wished(arguments))
        limit_s = may.time_limit_s
        flavor = _flavor(spec)
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
        names=_names([server]),
    )


def _flavor(spec: Mapping[str, Any]) -> str:
    return fields.text(fields.versioned(spec.get('flavor'), 'Flavor'), 'name')


def _owner(holder: Mapping[str, Any]) -> tuple[str, str]:
    return (
        fields.identity(holder, 'project_id'),
        fields.text(holder, 'user_id'),
    )


def _group(spec: Mapping[str, Any]) -> request.Group | None:
    """The server group, if its rule is strict."""
    if spec.get('instance_group') is None:
        return None
    group = fields.versioned(spec['instance_group'], 'InstanceGroup')
    policy = fields.text(group, 'policy')
    if policy not in {each.value for each in request.Rule}:
        return None
    rule = request.Rule(policy)
    # Nova writes the rules as a private field.
    rules = fields.mapping(group, '_rules')
    most = fields.whole(rules.get('max_server_per_host', 1))
    if rule is request.Rule.TOGETHER or most is None:
        most = 1
    return request.Group(
        fields.uuid(group, 'uuid'), rule, max(1, min(most, 2**31 - 1))
    )
