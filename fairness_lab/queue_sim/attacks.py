# SPDX-License-Identifier: Apache-2.0

"""Gains of users who try to get more than their turn.

An attack changes the requests of one party: the first user of the first
project, or that whole project. All others ask for the same. The gain is the
party's allocation with the attack, divided by the one without.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import math
from typing import Any

import numpy as np

from fairness_lab.queue_sim import engine
from fairness_lab.queue_sim import workload
from nova_fairness.planners.fairqueue import order as order_module

Floats = workload.Floats
Indices = workload.Indices

SHORT_S = 600.0
"""Lifetime of an attack's servers that are deleted and asked for again."""

IDS = 4
"""Users or projects that one party seems to be."""

_NAMED_FOR_S = 6 * workload.HOUR_S
_TTL_S = 12 * workload.HOUR_S


@dataclasses.dataclass(frozen=True)
class Attack:
    """A way in which a party tries to get more than its turn.

    :ivar description: one sentence.
    :ivar change: the cloud with what the party asks for instead; a user above
        those there were is the party's, too.
    :ivar project: the party is a project, not a user.
    """

    description: str
    change: Callable[[workload.QueuedCloud], workload.QueuedCloud]
    project: bool = False


@dataclasses.dataclass(frozen=True)
class AttackOutcome:
    """Gain of an attack, and losses of others.

    :ivar honest: mean part of the cloud that the party has without the attack,
        in the class that is its largest.
    :ivar attacked: the same with it.
    :ivar neighbours_lose: by what part the other users of its project have
        less; 0 if there are none.
    :ivar others_lose: the same of other projects.
    """

    honest: float
    attacked: float
    neighbours_lose: float
    others_lose: float

    @property
    def gain(self) -> float:
        """Allocation of the party, divided by the honest one."""
        return self.attacked / self.honest if self.honest else math.inf


def simulate_attack(
    cloud: workload.QueuedCloud, attack: Attack, order: order_module.Order
) -> AttackOutcome:
    """Simulate a cloud as it is and with an attack.

    :raises PluginMisbehaved: if the order fails.
    """
    before = _mean_use(cloud, order)
    after = _mean_use(attack.change(cloud), order)
    users = len(before)
    project = np.array(cloud.owners.project)
    mine = project == 0 if attack.project else np.arange(users) == 0
    near = (project == 0) & ~mine
    extra = after[users:].sum(axis=0)

    def lost(who: Any) -> float:
        had, has = (
            _largest_fraction(each[:users][who]) for each in (before, after)
        )
        return 1 - has / had if had > 0 else 0.0

    return AttackOutcome(
        _largest_fraction(before[mine]),
        float((after[:users][mine].sum(axis=0) + extra).max()),
        lost(near),
        lost(project != 0),
    )


def _largest_fraction(parts: Floats) -> float:
    return float(parts.sum(axis=0).max(initial=0.0))


def _mean_use(
    cloud: workload.QueuedCloud, order: order_module.Order
) -> Floats:
    """(u, c) mean part of the cloud, after two half-lives if it lasts."""
    settled_s = min(2 * cloud.half_life_s, cloud.duration_s / 2)
    moments = engine.Simulation(cloud, order).moments(settled_s)
    first = last = next(moments)
    for each in moments:
        last = each
    area = (last.area - first.area) / (last.at_s - first.at_s)
    held: Floats = area / cloud.capacity
    return held


def _rows_of_first_user(cloud: workload.QueuedCloud) -> Indices:
    """Rows of the requests of the first user."""
    return np.flatnonzero(cloud.stream.user == 0)


def _with_other_requests(
    cloud: workload.QueuedCloud, rows: Indices, **columns: Any
) -> workload.QueuedCloud:
    """The cloud with other requests of the first user.

    :param rows: of the requests that each of the new ones is like.
    :param columns: of the new ones, and what differs.
    """
    stream = cloud.stream
    sizes = columns.pop('sizes', stream.sizes)
    kept = np.flatnonzero(stream.user != 0)
    whole = {}
    for name in ('asked_s', 'lifetime_s', 'deleted_s', 'user', 'size'):
        old = getattr(stream, name)
        whole[name] = np.concatenate([old[kept], columns.get(name, old[rows])])
    none = np.full(len(rows), -1)
    whole['resized'] = np.concatenate(
        [np.full(len(kept), -1), columns.get('resized', none)]
    )
    order = np.argsort(whole['asked_s'], kind='stable')
    changed = {name: column[order] for name, column in whole.items()}
    return dataclasses.replace(
        cloud, stream=workload.Stream(**changed, sizes=sizes)
    )


def _under_aliases(
    cloud: workload.QueuedCloud, ids: Indices
) -> workload.QueuedCloud:
    """The cloud with the first user's requests in other users' names.

    :param ids: (m,) of each request, 0 for the own name.
    """
    owners = cloud.owners
    count = int(ids.max(initial=0))
    names = tuple(f'alias-{n}' for n in range(1, count + 1))
    user = np.where(ids > 0, len(owners.users) + ids - 1, 0)
    changed = dataclasses.replace(
        owners,
        users=owners.users + names,
        project=owners.project + (0,) * count,
    )
    cloud = _with_other_requests(cloud, _rows_of_first_user(cloud), user=user)
    return dataclasses.replace(cloud, owners=changed)


def _attack_by_churn(cloud: workload.QueuedCloud) -> workload.QueuedCloud:
    stream, mine = cloud.stream, _rows_of_first_user(cloud)
    times = np.ceil(stream.lifetime_s[mine] / SHORT_S).astype(np.int64)
    rows = np.repeat(mine, times)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    left_s = stream.lifetime_s[rows] - nth * SHORT_S
    return _with_other_requests(
        cloud,
        rows,
        asked_s=stream.asked_s[rows] + nth * SHORT_S,
        lifetime_s=np.minimum(left_s, SHORT_S),
    )


def _add_smallest_size(
    cloud: workload.QueuedCloud,
) -> tuple[tuple[workload.Size, ...], int]:
    """All sizes and that of one VCPU behind them, with its place."""
    sizes = cloud.stream.sizes
    memory_mib = min(each.memory_mib // each.vcpus for each in sizes)
    return (*sizes, workload.Size(1, memory_mib)), len(sizes)


def _attack_by_small_servers(
    cloud: workload.QueuedCloud,
) -> workload.QueuedCloud:
    stream, mine = cloud.stream, _rows_of_first_user(cloud)
    sizes, one = _add_smallest_size(cloud)
    vcpus = np.array([each.vcpus * each.servers for each in stream.sizes])
    rows = np.repeat(mine, vcpus[stream.size[mine]])
    return _with_other_requests(
        cloud, rows, size=np.full(len(rows), one), sizes=sizes
    )


def _attack_by_resizing(cloud: workload.QueuedCloud) -> workload.QueuedCloud:
    mine = _rows_of_first_user(cloud)
    sizes, one = _add_smallest_size(cloud)
    return _with_other_requests(
        cloud,
        mine,
        size=np.full(len(mine), one),
        resized=cloud.stream.size[mine],
        sizes=sizes,
    )


def _attack_as_several_users(
    cloud: workload.QueuedCloud,
) -> workload.QueuedCloud:
    return _under_aliases(
        cloud, np.arange(len(_rows_of_first_user(cloud))) % IDS
    )


def _attack_by_renaming(cloud: workload.QueuedCloud) -> workload.QueuedCloud:
    asked_s = cloud.stream.asked_s[_rows_of_first_user(cloud)]
    return _under_aliases(cloud, (asked_s // _NAMED_FOR_S).astype(np.int64))


def _attack_as_several_projects(
    cloud: workload.QueuedCloud,
) -> workload.QueuedCloud:
    owners, stream = cloud.owners, cloud.stream
    team = [n for n, project in enumerate(owners.project) if project == 0]
    users, projects, project = (
        [*owners.users],
        [*owners.projects],
        [*owners.project],
    )
    first: list[Indices] = [np.arange(len(users))]
    for n in range(1, IDS):
        other = np.arange(len(owners.users))
        other[team] = len(users) + np.arange(len(team))
        first.append(other)
        users += [owners.users[each] for each in team]
        project += [len(projects)] * len(team)
        projects.append(f'{owners.projects[0]}-alias-{n}')
    user = np.array(first)[np.arange(len(stream)) % IDS, stream.user]
    shares = owners.shares + owners.shares[:1] * (IDS - 1)
    changed = workload.Owners(
        tuple(projects), shares, tuple(users), tuple(project)
    )
    return dataclasses.replace(
        cloud,
        owners=changed,
        stream=dataclasses.replace(stream, user=user),
    )


def _with_hoarded_servers(
    cloud: workload.QueuedCloud, longest_s: float
) -> workload.QueuedCloud:
    """All that is wanted on average, from the begin on and for all the time.

    :param longest_s: after which servers end; they are asked for again.
    """
    stream, mine = cloud.stream, _rows_of_first_user(cloud)
    amounts = np.array([each.amounts for each in stream.sizes])
    part = (amounts / cloud.capacity).max(axis=1)[stream.size[mine]]
    begin_s = float(stream.asked_s.min())
    wanted = part @ stream.lifetime_s[mine] / (cloud.duration_s - begin_s)
    count = max(int((np.cumsum(part) <= wanted).sum()), 1)
    again = math.ceil(cloud.duration_s / longest_s)
    rows = np.repeat(mine[:count], again)
    nth = np.tile(np.arange(again), count)
    lifetime_s = np.full(len(rows), min(longest_s, cloud.duration_s))
    return _with_other_requests(
        cloud, rows, asked_s=nth * longest_s, lifetime_s=lifetime_s
    )


def _attack_by_hoarding(cloud: workload.QueuedCloud) -> workload.QueuedCloud:
    return _with_hoarded_servers(cloud, cloud.duration_s)


def _attack_by_hoarding_with_ttl(
    cloud: workload.QueuedCloud,
) -> workload.QueuedCloud:
    return _with_hoarded_servers(cloud, min(_TTL_S, cloud.half_life_s))


def _attack_on_lifetimes(cloud: workload.QueuedCloud) -> workload.QueuedCloud:
    """Three of four are short, the fourth is as much longer."""
    mine = _rows_of_first_user(cloud)
    times = np.where(np.arange(len(mine)) % 4 == 3, 3.7, 0.1)
    return _with_other_requests(
        cloud, mine, lifetime_s=cloud.stream.lifetime_s[mine] * times
    )


ATTACKS: Mapping[str, Attack] = {
    'churn': Attack(
        'Servers are deleted after ten minutes and asked for again, as long'
        ' as one would have run.',
        _attack_by_churn,
    ),
    'many-small': Attack(
        'Servers of one VCPU instead of larger ones.', _attack_by_small_servers
    ),
    'users': Attack(
        f'One user asks in the names of {IDS} users of the project.',
        _attack_as_several_users,
    ),
    'projects': Attack(
        f'One project asks as {IDS} projects, each with its share.',
        _attack_as_several_projects,
        project=True,
    ),
    'hoarding': Attack(
        'Before others come, all that will be wanted is started, and never'
        ' deleted.',
        _attack_by_hoarding,
    ),
    'hoarding-with-ttl': Attack(
        'The same where servers end after a half-life, and are asked for'
        ' again.',
        _attack_by_hoarding_with_ttl,
    ),
    'renaming': Attack(
        'A new user of the project asks every six hours.', _attack_by_renaming
    ),
    'resize': Attack(
        'Servers of one VCPU are asked for, and resized ten minutes after'
        ' their start.',
        _attack_by_resizing,
    ),
    'lifetimes': Attack(
        'Three of four servers last a tenth as long, so that short lives are'
        ' expected, and the fourth takes the time of all.',
        _attack_on_lifetimes,
    ),
}
"""By name."""
