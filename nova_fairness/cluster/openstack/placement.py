# SPDX-License-Identifier: Apache-2.0

"""Resource providers in Placement, and reservations of room for requests."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
from typing import Any
import uuid as uuid_module

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster.openstack import clients
from nova_fairness.model import request as request_model

LOG = logging.getLogger(__name__)

Amount = tuple[int, int, int, int]
"""Capacity, used amount, largest unit and step of a resource class."""

_PROVIDERS_AT_ONCE, _PROJECTS_AT_ONCE = 10, 5
"""Unchanged providers, and projects, that are read again in one look."""

_SHARES = 'MISC_SHARES_VIA_AGGREGATE'

_MOST = 2**46
"""Largest capacity: Placement accepts ratios up to 3e38, and sums must fit
into 64 bits.
"""


@dataclasses.dataclass(frozen=True)
class ProviderTree:
    """Sum of the providers below one root provider.

    :ivar uuid: UUID of the root.
    :ivar name: name of the root; Nova may use another name for the host.
    :ivar amounts: amounts by class. Several children may serve the request
        groups of one server, so largest units are summed, too.
    :ivar traits: traits of all providers.
    :ivar aggregates: aggregates of the root.
    :ivar parts: amounts of every provider, by its UUID, the root first.
    """

    uuid: str
    name: str
    amounts: Mapping[str, Amount]
    traits: frozenset[str]
    aggregates: frozenset[str]
    parts: Mapping[str, Mapping[str, Amount]]

    @property
    def is_shared(self) -> bool:
        """Return whether hosts outside of this tree use its resources."""
        return _SHARES in self.traits

    @property
    def offered_classes(self) -> frozenset[str]:
        """Return the resource classes with a capacity above 0."""
        return frozenset(
            name for name, (have, *_) in self.amounts.items() if have > 0
        )


@dataclasses.dataclass(frozen=True)
class _CachedProvider:
    """Data of one provider as last read."""

    generation: int
    amounts: Mapping[str, Amount]
    traits: frozenset[str]
    aggregates: frozenset[str]


class _RoundRobin:
    """Selects list items in turn, when one call cannot read all of them.

    :param at_once: largest number of items in one call.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._next = 0

    def next_indexes(self, count: int) -> frozenset[int]:
        """Return the indexes of the items that this call reads.

        :param count: number of items.
        """
        places = range(self._next, self._next + min(self._at_once, count))
        self._next = places.stop
        return frozenset(place % count for place in places)


class Placement:
    """Client of Placement with a cache; only data that may have changed are
    read again.

    A provider's generation grows with every change of its inventories, traits
    and aggregates, and with new allocations, but not when an allocation is
    deleted. So the use of a provider is read again if the caller names it as
    freed, and that of all other providers in turn. Until then a host seems
    fuller than it is, never emptier. The use of projects is read again in the
    same way. The use of a user is read again if that user's servers changed,
    or if the sum over all users is not the use of the project.

    :param api: API of Placement.
    :ivar unreadable: errors of trees in the last read, by UUID of the root.
        These trees are left out of results, so that no server starts there.
    :ivar is_whole: whether all listed providers were read.
    """

    def __init__(self, api: clients.Api) -> None:
        self._api = api
        self.is_whole = True
        self._known: dict[str, _CachedProvider] = {}
        self._trees: dict[
            str, tuple[dict[str, _CachedProvider], ProviderTree]
        ] = {}
        self._usages: dict[str, dict[str, dict[str, int]]] = {}
        self._summed: dict[str, Mapping[str, int]] = {}
        self._providers = _RoundRobin(_PROVIDERS_AT_ONCE)
        self._projects = _RoundRobin(_PROJECTS_AT_ONCE)
        self.unreadable: dict[str, Exception] = {}

    def provider_trees(
        self,
        freed: Collection[str] = (),
        changed: Iterable[tuple[str, str]] = (),
    ) -> dict[str, ProviderTree]:
        """Return all provider trees, by UUID of their root.

        :param freed: roots of trees whose use may have decreased.
        :param changed: pairs of project and user whose use may have changed.
        :raises CloudError: if the providers cannot be read.
        """
        below = self._read_providers(freed)
        self._trees = {
            root: made for root, made in self._trees.items() if root in below
        }
        asked = sorted(self._usages)
        in_turn = {asked[n] for n in self._projects.next_indexes(len(asked))}
        for project, user in {*changed, *((each, '') for each in in_turn)}:
            self._uncache_usage(project, user)
        return {
            root: self._provider_tree(root, providers)
            for root, providers in below.items()
            if root in self._known
        }

    def _read_providers(
        self, freed: Collection[str]
    ) -> dict[str, list[Mapping[str, Any]]]:
        """Return the providers by their root, of trees that can be read
        completely.
        """
        found = _require_answer(self._api.get('/resource_providers'))
        listed = found['resource_providers']
        in_turn = self._providers.next_indexes(len(listed))
        below: dict[str, list[Mapping[str, Any]]] = {}
        known = {}
        self.unreadable = {}
        self.is_whole = True
        failures = clients.FailureTolerance()
        for number, each in enumerate(listed):
            if _root_uuid(each) in self.unreadable:
                continue
            try:
                root = _text_field(each, 'root_provider_uuid')
                is_due = number in in_turn or root in freed
                provider = self._cached_provider(
                    _text_field(each, 'uuid'), each['generation'], is_due
                )
            except (exception.CloudError, LookupError, TypeError) as error:
                failures.record(error)
                # A tree with an unknown part counts as full.
                self.unreadable[_root_uuid(each)] = error
                provider = None
            if provider is None:
                self.is_whole = False
                continue
            known[each['uuid']] = provider
            below.setdefault(root, []).append(each)
        failures.check_failure_rate(len(set(map(_root_uuid, listed))))
        for root in self.unreadable:
            below.pop(root, None)
        self._known = known
        return below

    def allocated_by_project(
        self, project: str, user: str = ''
    ) -> Mapping[str, int]:
        """Return the amounts that a project has allocated, by class.

        :param user: user whose part is returned; '' for all users.
        :raises CloudError: if the amounts cannot be read.
        """
        known = self._usages.setdefault(project, {})
        if user not in known:
            path = f'/usages?project_id={project}'
            path += f'&user_id={user}' if user else ''
            found = _require_answer(self._api.get(path))
            with clients.parsing(f'what Placement says {project} uses'):
                known[user] = dict(found['usages'])
        return known[user]

    def allocated_by_users(
        self, project: str, users: Collection[str]
    ) -> dict[str, Mapping[str, int]]:
        """Return the amounts that users of a project have allocated, by user
        and class.

        :param users: all users of the project with servers.
        :raises CloudError: if the amounts cannot be read.
        """
        total = self.allocated_by_project(project)
        if len(users) == 1:
            # The use of a single user is that of the project.
            return dict.fromkeys(users, total)
        known = self._usages[project].keys() & set(users)
        found = {
            user: self.allocated_by_project(project, user) for user in users
        }
        is_new = self._summed.get(project) != total
        if (
            known
            and is_new
            and _sum_amounts(found.values()) != _sum_amounts([total])
        ):
            for user in known:
                self._uncache_usage(project, user)
            total = self.allocated_by_project(project)
            found = {
                user: self.allocated_by_project(project, user)
                for user in users
            }
        self._summed[project] = total
        return found

    def _uncache_usage(self, project: str, user: str) -> None:
        """Remove the use of a user, and of the whole project, from the
        cache.
        """
        for whose in ('', user):
            self._usages.get(project, {}).pop(whose, None)

    def reserve(
        self, request: request_model.Request, trees: Iterable[ProviderTree]
    ) -> None:
        """Reserve room for a request; a repeated call has no effect.

        :param trees: one tree per server.
        :raises CloudRefused: if there is not enough free room.
        """
        if not request.demand.amounts or self.has_reservation(request):
            return
        shares = _allocations_of_servers(request, trees)
        body = {
            # One consumer per server: the largest unit limits each consumer.
            _reservation_consumer(server): {
                'allocations': {
                    provider: {'resources': amounts}
                    for provider, amounts in share.items()
                },
                'consumer_generation': None,
                'project_id': request.project,
                'user_id': _consumer_user(request),
            }
            for server, share in zip(request.servers, shares, strict=True)
        }
        self._api.post('/allocations', body)
        self._uncache_usage(request.project, _consumer_user(request))

    def has_reservation(self, request: request_model.Request) -> bool:
        """Return whether room is reserved for a request."""
        return self.has_allocation(_reservation_consumer(request.servers[0]))

    def has_allocation(self, server: str) -> bool:
        """Return whether a server has room in Placement.

        :raises CloudError: if Placement does not answer.
        """
        found = self._api.get(f'/allocations/{server}')
        return bool(found and found.get('allocations'))

    def allocated_amounts(self, server: str) -> dict[str, int]:
        """Return the amounts that a server has allocated on all hosts, by
        class.

        :raises CloudError: if Placement does not answer.
        """
        found = self._api.get(f'/allocations/{server}')
        total: dict[str, int] = {}
        with clients.parsing(f'what Placement has allocated to {server}'):
            for part in (found or {}).get('allocations', {}).values():
                for name, amount in part['resources'].items():
                    total[name] = total.get(name, 0) + max(int(amount), 0)
        return total

    def consumers_on_host(self, host: str) -> frozenset[str]:
        """Return the UUIDs of consumers with room on a host: servers, and
        started migrations.

        :param host: UUID of its root provider.
        :raises CloudError: if Placement does not answer.
        """
        found = self._api.get(f'/resource_providers/{host}/allocations')
        with clients.parsing(f'who has room on provider {host}'):
            return frozenset(found['allocations'] if found else ())

    def release(self, request: request_model.Request) -> None:
        """Release the reservation of a request, if it has one."""
        if len(request.servers) == 1 or not self._release_in_one_call(request):
            # The first server comes last: it shows whether any room is
            # reserved.
            for server in reversed(request.servers):
                self._api.delete(
                    f'/allocations/{_reservation_consumer(server)}'
                )
        self._uncache_usage(request.project, _consumer_user(request))

    def _release_in_one_call(self, request: request_model.Request) -> bool:
        """Release the reservation of many servers by one call, completely or
        not at all.

        :returns: ``False`` if a part of the reservation changed since it was
            made.
        """
        path = f'/allocations/{_reservation_consumer(request.servers[0])}'
        first = self._api.get(path)
        if not first or not first.get('allocations'):
            return True
        nothing: dict[str, Any] = {
            'allocations': {},
            # One call reserved all of them, so they have the same generation.
            'consumer_generation': first.get('consumer_generation'),
            'project_id': request.project,
            'user_id': _consumer_user(request),
        }
        every = {
            _reservation_consumer(server): nothing
            for server in request.servers
        }
        try:
            self._api.post('/allocations', every)
        except exception.CloudRefused as error:
            LOG.info(
                'reservation of request %s: it is released server by server:'
                ' one call for all servers failed: %s',
                request.uuid,
                error,
            )
            return False
        return True

    def _cached_provider(
        self, uuid: str, generation: int, is_due: bool
    ) -> _CachedProvider | None:
        """Return one provider, from the cache if possible; ``None`` if it was
        deleted.

        :param is_due: whether its use is read although its generation is
            unchanged.
        """
        known = self._known.get(uuid)
        is_old = known is None or known.generation != generation
        if known is not None and not (is_old or is_due):
            return known
        with clients.parsing(f'the answer of Placement about {uuid}'):
            if known is None or is_old:
                return self._read_provider(uuid, generation)
            return self._with_current_usage(uuid, known)

    def _read_provider(
        self, uuid: str, generation: int
    ) -> _CachedProvider | None:
        """Read all data of one provider; return ``None`` if it was deleted."""
        path = f'/resource_providers/{uuid}'
        inventories = self._api.get(f'{path}/inventories')
        usages = self._api.get(f'{path}/usages')
        traits = self._api.get(f'{path}/traits')
        aggregates = self._api.get(f'{path}/aggregates')
        if (
            inventories is None
            or usages is None
            or traits is None
            or aggregates is None
        ):
            return None
        return _CachedProvider(
            generation,
            {
                name: _parse_inventory(each, usages['usages'].get(name, 0))
                for name, each in inventories['inventories'].items()
            },
            frozenset(traits['traits']),
            frozenset(aggregates['aggregates']),
        )

    def _with_current_usage(
        self, uuid: str, known: _CachedProvider
    ) -> _CachedProvider | None:
        """Return a cached provider with its present use; ``None`` if it was
        deleted.
        """
        usages = self._api.get(f'/resource_providers/{uuid}/usages')
        if usages is None:
            return None
        amounts = {
            name: (
                capacity,
                _parse_usage(usages['usages'].get(name, 0)),
                unit,
                step,
            )
            for name, (capacity, _, unit, step) in known.amounts.items()
        }
        return dataclasses.replace(known, amounts=amounts)

    def _provider_tree(
        self, root: str, providers: Iterable[Mapping[str, Any]]
    ) -> ProviderTree:
        """Return the tree below a root, from the cache if no provider
        changed.
        """
        order = sorted(providers, key=lambda p: (p['uuid'] != root, p['uuid']))
        known = {each['uuid']: self._known[each['uuid']] for each in order}
        name = str(order[0].get('name') or root)
        made = self._trees.get(root)
        if made is None or made[0] != known or made[1].name != name:
            made = self._trees[root] = (
                known,
                _sum_providers(root, name, known),
            )
        return made[1]


def _sum_providers(
    root: str, name: str, known: Mapping[str, _CachedProvider]
) -> ProviderTree:
    """Return the tree of some providers, the root first."""
    amounts: dict[str, Amount] = {}
    for each in known.values():
        for resource, amount in each.amounts.items():
            amounts[resource] = _add_amounts(amounts.get(resource), amount)
    return ProviderTree(
        root,
        name,
        amounts,
        frozenset().union(*(each.traits for each in known.values())),
        known[root].aggregates,
        {uuid: each.amounts for uuid, each in known.items()},
    )


def _consumer_user(request: request_model.Request) -> str:
    """Return the user ID of a request's reservation: its user or, without a
    user, its project.
    """
    return request.user or request.project


def _sum_amounts(used: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the sum of amounts, by class."""
    total: dict[str, int] = {}
    for amounts in used:
        for name, amount in amounts.items():
            if amount:
                total[name] = total.get(name, 0) + amount
    return total


def _require_answer(found: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return an answer of Placement.

    :raises CloudAway: if Placement answered 404.
    """
    if found is None:
        raise exception.CloudAway(
            'Placement answers 404 to a list: its endpoint may be wrong; check'
            ' the endpoint in Keystone\'s catalog'
        )
    return found


def _parse_inventory(inventory: Mapping[str, Any], used: int) -> Amount:
    """Return the amount of one class of a provider."""
    free = inventory['total'] - inventory.get('reserved', 0)
    capacity = free * inventory.get('allocation_ratio', 1.0)
    capacity = max(int(min(capacity, _MOST)), 0)
    unit = max(int(min(inventory.get('max_unit', capacity), capacity)), 0)
    step = min(max(int(inventory.get('step_size', 1)), 1), _MOST)
    return capacity, _parse_usage(used), unit, step


def _parse_usage(told: Any) -> int:
    """Return an amount in use, >= 0.

    :raises ValueError: if it is negative: a host must not seem emptier than it
        is.
    """
    used = int(told)
    if used < 0:
        raise ValueError(f'the amount in use must be at least 0, got {used}')
    return min(used, _MOST)


def _text_field(listed: Any, key: str) -> str:
    """Return a text field of a provider's entry.

    :raises LookupError: if the field is missing.
    :raises TypeError: if it is not text.
    """
    found = listed[key]
    if not isinstance(found, str):
        raise TypeError(f'{key} must be text')
    return found


def _root_uuid(listed: Any) -> str:
    """Return the UUID of a provider's root, even if other fields are
    malformed; '' if unknown.
    """
    found = listed if isinstance(listed, dict) else {}
    return str(found.get('root_provider_uuid') or found.get('uuid') or '')


def _add_amounts(one: Amount | None, other: Amount) -> Amount:
    """Return the sum of two amounts of a class; the step is the smaller
    one.
    """
    if one is None:
        return other
    return (
        one[0] + other[0],
        one[1] + other[1],
        one[2] + other[2],
        min(one[3], other[3]),
    )


def _allocations_of_servers(
    request: request_model.Request, trees: Iterable[ProviderTree]
) -> list[dict[str, dict[str, int]]]:
    """Return the allocations of each server of a request, by provider.

    :raises CloudRefused: if there is not enough room.
    """
    taken: dict[tuple[str, str], int] = {}
    return [
        _allocations_of_server(
            request.demand.on(tree.offered_classes).amounts, tree, taken
        )
        for tree in trees
    ]


def _allocations_of_server(
    demand: Iterable[tuple[str, int]],
    tree: ProviderTree,
    taken: dict[tuple[str, str], int],
) -> dict[str, dict[str, int]]:
    """Return the allocations of one server, by provider.

    :param taken: amounts of the previous servers, by provider and class; the
        amounts of this server are added.
    :raises CloudRefused: if there is not enough room.
    """
    share: dict[str, dict[str, int]] = {}
    for name, amount in demand:
        if name not in tree.amounts:
            # The class belongs to a shared provider: Nova claims it.
            continue
        left = amount
        for provider, amounts in tree.parts.items():
            capacity, used, unit, _ = amounts.get(name, (0, 0, 0, 1))
            before = taken.get((provider, name), 0)
            part = max(min(left, unit, capacity - used - before), 0)
            if part:
                taken[provider, name] = before + part
                share.setdefault(provider, {})[name] = part
                left -= part
        if left:
            raise exception.CloudRefused(
                f'host {tree.name} has too little free {name}'
            )
    return share


def _reservation_consumer(server: str) -> str:
    """Return the UUID of the consumer that reserves room for a server."""
    return str(uuid_module.uuid5(uuid_module.UUID(server), 'hold'))
