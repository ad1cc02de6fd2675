# SPDX-License-Identifier: Apache-2.0

"""Pinned servers, on hosts with and without dedicated CPUs."""

import dataclasses
import random

import numpy as np
import pytest

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.planners import alternatives
from nova_fairness.planners import hosts as hosts_module
from nova_fairness.planners.fairqueue import planner
from nova_fairness.planners.preemption import planner as preemption
from tests.fixtures import small_cloud

CLASSES = ('MEMORY_MB', 'PCPU', 'VCPU')
START, PASS = cluster.Verb.START, cluster.Verb.PASS
R = reason.Reason


def host(name, pcpu=0, vcpu=0, used_pcpu=0, used_vcpu=0, **more):
    provider = cluster.Provider(f'uuid-{name}', name, **more)
    return provider, (10_000, pcpu, vcpu), (0, used_pcpu, used_vcpu)


def cloud(hosts, requests=(), classes=CLASSES, **more):
    capacity = np.array([each[1] for each in hosts], np.int64)
    used = np.array([each[2] for each in hosts], np.int64)
    columns = [CLASSES.index(name) for name in classes]
    capacity, used = capacity[:, columns], used[:, columns]
    inventory = cluster.Inventory(
        capacity, used, capacity, np.ones_like(capacity)
    )
    more.setdefault('knows_classes', True)
    return cluster.ClusterSnapshot(
        classes,
        tuple(each[0] for each in hosts),
        inventory,
        tuple(requests),
        **more,
    )


def pinned(cpus=4, **more):
    return request.Demand((('MEMORY_MB', 100), ('PCPU', cpus)), **more)


def ask(name, cpus=4, count=1, demand=None, **more):
    wanted = demand or pinned(cpus)
    return small_cloud.waiting_request(
        name, demand=wanted, count=count, **more
    )


def planned(hosts, requests, **more):
    return planner.plan(cloud(hosts, requests, **more), 1000.0)


def placed(hosts, requests, **more):
    """Hosts by request that starts."""
    made = planned(hosts, requests, **more).actions
    return {each.request: each.hosts for each in made if each.verb is START}


def test_pinned_servers_start_where_no_host_has_dedicated_cpus():
    asked = [ask('a'), ask('b')]
    hosts = [host('h1', vcpu=4), host('h2', vcpu=4)]
    for classes in (CLASSES, ('MEMORY_MB', 'VCPU')):
        found = placed(hosts, asked, classes=classes)
        assert sorted(found.values()) == [('h1',), ('h2',)]


def test_dedicated_cpus_come_first():
    hosts = [host('a', vcpu=8), host('b', pcpu=8)]
    assert placed(hosts, [ask('r')]) == {'r': ('b',)}


def test_a_host_with_dedicated_cpus_gives_no_shared_ones_instead():
    hosts = [host('a', pcpu=4, vcpu=64, used_pcpu=4)]
    found = planned(hosts, [ask('r')])
    assert not found.actions
    assert found.waiting['r'].why.reason is R.NO_ROOM
    assert found.waiting['r'].why.subject == 'PCPU'


def test_hosts_without_dedicated_cpus_are_next_when_those_are_in_use():
    hosts = [host('a', vcpu=8), host('b', pcpu=4, used_pcpu=4)]
    assert placed(hosts, [ask('r')]) == {'r': ('a',)}


def test_without_the_fallback_dedicated_cpus_alone_count():
    hosts = [host('a', vcpu=8), host('b', pcpu=4, used_pcpu=4)]
    assert placed(hosts, [ask('r')], falls_back=False) == {}
    hosts = [host('a', vcpu=8)]
    made = planned(
        hosts, [ask('r')], classes=('MEMORY_MB', 'VCPU'), falls_back=False
    )
    [action] = made.actions
    assert action.verb is PASS
    assert action.why == reason.why(R.LEFT_TO_NOVA, 'PCPU')


def test_a_request_for_dedicated_cpus_by_name_has_no_fallback():
    hosts = [host('a', vcpu=8), host('b', pcpu=4, used_pcpu=4)]
    wanted = pinned(fallbacks=())
    assert placed(hosts, [ask('r', demand=wanted)]) == {}


def test_traits_of_the_policy_of_threads_do_not_count_for_the_fallback():
    wanted = pinned(forbidden=frozenset({request.HYPERTHREADING, 'T'}))
    threads = frozenset({request.HYPERTHREADING})
    old = host('a', vcpu=8, traits=threads)
    new = host('b', pcpu=8, vcpu=8, traits=threads)
    assert placed([old, new], [ask('r', demand=wanted)]) == {'r': ('a',)}
    marked = host('a', vcpu=8, traits=frozenset({'T'}))
    assert placed([marked, new], [ask('r', demand=wanted)]) == {}


def test_the_chosen_alternative_fits_on_all_hosts():
    # Neither has room now. Two servers never fit on dedicated CPUs.
    hosts = [
        host('a', vcpu=8, used_vcpu=1),
        host('b', pcpu=4, used_pcpu=1),
        host('c', vcpu=8, used_vcpu=8),
    ]
    snapshot = cloud(hosts, [ask('one'), ask('two', 4, count=4)])
    one, two = alternatives.with_chosen_alternatives(snapshot).requests
    assert dict(one.demand.amounts) == {'MEMORY_MB': 100, 'VCPU': 4}
    busy = [*hosts[1:], host('a', vcpu=8, used_vcpu=8)]
    snapshot = cloud(busy, [ask('one'), ask('two', 4, count=4)])
    one, two = alternatives.with_chosen_alternatives(snapshot).requests
    assert dict(one.demand.amounts) == {'MEMORY_MB': 100, 'PCPU': 4}
    assert dict(two.demand.amounts) == {'MEMORY_MB': 100, 'VCPU': 4}
    again = alternatives.with_chosen_alternatives(
        alternatives.with_chosen_alternatives(snapshot)
    )
    assert again.requests == (one, two)


def test_the_resource_class_given_by_the_host_is_counted():
    limits = {'p': cluster.Limits({}, {'VCPU': 4})}
    asked = [ask('a', 4), ask('b', 4, at=1.0)]
    used = {'p': np.zeros(3, np.int64)}
    shared = planned([host('h', vcpu=16)], asked, limits=limits, used=used)
    assert [each.request for each in shared.actions] == ['a']
    assert shared.waiting['b'].why.reason is R.OVER_CEILING
    # Dedicated CPUs are another class, as in Nova's unified limits.
    own = planned([host('h', pcpu=16)], asked, limits=limits, used=used)
    assert len(own.actions) == 2


def test_a_reservation_uses_the_resource_class_of_its_hosts():
    hosts = [host('a', vcpu=4, used_vcpu=4), host('b', pcpu=4)]
    snapshot = cloud(hosts, [ask('r')], promised={'r': ('a',)})
    [found] = alternatives.with_chosen_alternatives(snapshot).requests
    assert dict(found.demand.amounts)['VCPU'] == 4


def test_room_is_made_on_shared_cpus_for_a_pinned_server():
    hosts = [host('a', vcpu=4, used_vcpu=4)]
    victim = cluster.Running(
        'a', 'q', (('MEMORY_MB', 100), ('VCPU', 4)), 0.0, 'v', 's',
        band=request.Band.PREEMPTIBLE,
    )  # fmt: skip
    snapshot = cloud(hosts, [ask('r')], running=(victim,))
    [action] = preemption.plan(snapshot, 5000.0, planner.plan).actions
    assert (action.verb, action.leaving) == (cluster.Verb.MAKE_ROOM, ('s',))


CUSTOM = request.Demand((('CUSTOM_X', 1), ('MEMORY_MB', 100)))


def test_a_request_for_a_class_of_no_host_is_left_to_nova():
    hosts = [host('a', vcpu=8)]
    made = planned(hosts, [ask('r', demand=CUSTOM), ask('s')])
    [passed, started] = made.actions
    assert (passed.verb, passed.request, passed.hosts) == (PASS, 'r', ())
    assert (started.verb, started.request) == (START, 's')
    assert 'r' not in made.waiting


def test_a_class_that_may_be_missing_for_a_moment_is_waited_for():
    hosts = [host('a', vcpu=8)]
    made = planned(hosts, [ask('r', demand=CUSTOM)], knows_classes=False)
    assert not made.actions
    assert made.waiting['r'].why.reason is R.TOO_LARGE


def test_a_host_that_is_down_has_its_classes():
    hosts = [host('a', vcpu=8), host('b', pcpu=8, takes=False)]
    wanted = pinned(fallbacks=())
    made = planned(hosts, [ask('r', demand=wanted)])
    assert not made.actions
    assert made.waiting['r'].why.reason is R.TOO_LARGE


def test_limits_hold_also_for_requests_left_to_nova():
    limits = {'p': cluster.Limits({}, {'MEMORY_MB': 50})}
    used = {'p': np.zeros(3, np.int64)}
    made = planned(
        [host('a', vcpu=8)], [ask('r', demand=CUSTOM)], limits=limits,
        used=used,
    )  # fmt: skip
    assert not made.actions
    assert made.waiting['r'].why.reason is R.OVER_CEILING


def test_no_request_passes_the_queue_with_one_that_is_left_to_nova():
    group = request.Group('g', request.Rule.APART)
    asked = [
        ask('odd', demand=CUSTOM, group=group),
        ask('usual', group=group),
        ask('before', at=-1.0),
    ]
    hosts = [host('a', vcpu=4)]
    made = planned(hosts, asked)
    verbs = {each.request: each.verb for each in made.actions}
    assert verbs == {'odd': PASS, 'before': START}
    assert 'usual' in made.waiting


def candidates(hosts, demand):
    """Hosts that Nova's two queries and its filter of NUMA cells leave."""
    amounts = dict(demand.amounts)
    for provider, have, used in hosts:
        free = dict(zip(CLASSES, np.subtract(have, used), strict=True))
        total = dict(zip(CLASSES, have, strict=True))
        if (
            request.HYPERTHREADING in demand.forbidden & provider.traits
            and (total['PCPU'])
        ):
            continue
        name = 'PCPU' if total['PCPU'] else 'VCPU'
        if min(free[name], total[name]) >= amounts['PCPU']:
            yield provider.name


@pytest.mark.parametrize('seed', range(200))
def test_a_pinned_server_starts_where_nova_would_start_it(seed):
    chance = random.Random(seed)
    threads = frozenset({request.HYPERTHREADING})
    hosts = []
    for n in range(chance.randint(1, 5)):
        pcpu = chance.choice((0, 0, 2, 4, 8))
        vcpu = chance.choice((0, 4, 8))
        hosts.append(
            host(
                f'h{n}', pcpu, vcpu,
                chance.randint(0, pcpu), chance.randint(0, vcpu),
                traits=chance.choice((threads, frozenset())),
            )
        )  # fmt: skip
    wanted = pinned(
        chance.choice((1, 2, 4)),
        forbidden=chance.choice((threads, frozenset())),
    )
    found = placed(hosts, [ask('r', demand=wanted)])
    may = set(candidates(hosts, wanted))
    assert bool(found) == bool(may)
    assert {each for names in found.values() for each in names} <= may


def test_a_demand_without_a_word_of_fallbacks_has_that_of_nova():
    first, second = pinned(
        required=frozenset({request.HYPERTHREADING, 'T'}), zone='z'
    ).alternatives
    assert first == pinned(
        required=frozenset({request.HYPERTHREADING, 'T'}),
        zone='z',
        fallbacks=(),
    )
    assert second == request.Demand(
        (('MEMORY_MB', 100), ('VCPU', 4)),
        required=frozenset({'T'}),
        zone='z',
        without=frozenset({'PCPU'}),
        fallbacks=(),
    )
    both = request.Demand((('PCPU', 1), ('VCPU', 1)))
    assert both.alternatives == (both,)
    assert small_cloud.demand().alternatives == (small_cloud.demand(),)


def test_hosts_come_from_the_first_usable_alternative():
    snapshot = cloud([host('a', vcpu=8), host('b', pcpu=2)])
    shape = hosts_module.Hosts(snapshot).shape(pinned(2))
    assert [int(row) for row in shape.rows] == [1]
    shape = hosts_module.Hosts(snapshot).shape(pinned(4))
    assert [int(row) for row in shape.rows] == [0]
    off = dataclasses.replace(snapshot, falls_back=False)
    assert hosts_module.Hosts(off).shape(pinned(4)).never == reason.why(
        R.TOO_LARGE, 'PCPU', asked=4.0, most=2.0
    )
