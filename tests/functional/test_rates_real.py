# SPDX-License-Identifier: Apache-2.0

"""Four classes of spending rates on real guests that share one CPU.

All have as much work. Who spends more is done sooner, as in the experiment of
Rajagopalan (2012, figure 7). What came of it is in ``build/rates-guests.inc``,
and in ``build/rates-guests.json`` for programs.
"""

import json
import os
import pathlib
import signal
import time

import pytest

from fairness_lab.testbed.nodes import processes
from nova_fairness.planners.market import cores
from nova_fairness.runtime import state_file
from tests.functional import agent_process
from tests.functional import agent_site

# The quick test of rates is that of test_cluster_rates_real.py.
pytestmark = [pytest.mark.real, pytest.mark.slow]

TOP = pathlib.Path(__file__).resolve().parents[2]
TOLD = TOP / 'build/rates-guests.inc'
TEST = str(pathlib.Path(__file__).relative_to(TOP))
RATES = {'one-1': 30.0, 'two-1': 60.0, 'three-1': 90.0, 'four-1': 120.0}
SHARES = dict.fromkeys(RATES, 1024)
WORK_S = 8.0
"""CPU seconds of each guest."""
ROUNDS = 3
"""After which rates hold."""
LOOKED_AT = 8
"""Rounds over which use is added up."""
EVERY_S = 0.05


@pytest.fixture(scope='module')
def site():
    with agent_site.running('agent-r', SHARES) as made:
        yield made


@pytest.fixture
def rates(tmp_path):
    return tmp_path / 'rates.json'


@pytest.fixture
def agent(site, tmp_path, rates):
    made = agent_process.Agent(
        site.node,
        tmp_path,
        metric='SpendingRate',
        policy='proportional',
        rates=rates,
    )
    yield made
    made.close()
    assert site.shares() == SHARES


def say(site, rates, by_name):
    uuids = {site.guests[name].uuid: each for name, each in by_name.items()}
    state_file.replace(rates, json.dumps(uuids), durable=False)


def used_s(site):
    """CPU seconds of the guests' own threads, by name."""
    found = {}
    for name in RATES:
        with site.domain(name) as each:
            found[name] = each.info()[4] / 1e9
    return found


def gained(site, agent, rounds):
    """CPU seconds from now on, for some rounds."""
    before = used_s(site)
    number = agent.rounds()[-1]['round']
    agent.await_round(lambda done: done['round'] >= number + rounds)
    return {name: each - before[name] for name, each in used_s(site).items()}


def parts(amounts):
    return {
        name: each / sum(amounts.values()) for name, each in amounts.items()
    }


def is_as(held, wanted, within):
    expected = parts(wanted)
    found = parts(held)
    return all(
        abs(found[name] / expected[name] - 1) < within for name in expected
    )


def test_cpu_time_follows_spending_rates_within_three_rounds(
    site, agent, rates
):
    say(site, rates, RATES)
    agent.start()
    agent.await_round(lambda done: is_as(held(done), RATES, 0.02), 30)
    assert is_as(gained(site, agent, LOOKED_AT), RATES, 0.1)

    turned = dict(zip(RATES, reversed(RATES.values()), strict=True))
    before = agent.rounds()[-1]['round']
    say(site, rates, turned)
    done = agent.await_round(lambda done: is_as(held(done), turned, 0.02))
    # One more may have been under way.
    assert done['round'] - before <= ROUNDS + 1
    assert is_as(site.shares(), turned, 0.02)
    assert is_as(gained(site, agent, LOOKED_AT), turned, 0.1)
    assert agent.stop() == 0


CPUS = os.cpu_count() or 1
EVERYWHERE = set(range(CPUS))
WIDE = {'wide-1': 200.0}
"""Who has two VCPUs, and the rate of both."""

# By somebody else, whatever is spent for it.
ELSEWHERE = {'one-1': [{0}]}
PINNED = {
    name: [{cpu} for cpu in on]
    for name, on in cores.assign_cores(
        [
            (name, rate, 1 + (name in WIDE))
            for name, rate in (WIDE | RATES).items()
            if name not in ELSEWHERE
        ],
        CPUS,
    ).items()
} | ELSEWHERE
LEFT = {
    name: [EVERYWHERE] * len(on) for name, on in PINNED.items()
} | ELSEWHERE


@pytest.fixture
def guests(site):
    """All of them on all CPUs, one with two VCPUs, one pinned by libvirt."""
    wide = site.start('wide-1', vcpus=2)
    try:
        wide.await_ready(agent_site.BOOT_S)
        site.spread()
        with site.domain('one-1') as each:
            each.pinVcpu(0, tuple(cpu == 0 for cpu in EVERYWHERE))
        yield {**site.guests, 'wide-1': wide}
    finally:
        with site.domain('one-1') as each:
            each.pinVcpu(0, (True,) * CPUS)
        site.destroy(wide)
        site.crowd()


def test_vcpus_are_pinned_by_rates_and_unpinned_at_the_end(
    site, agent, guests, rates
):
    by_name = RATES | WIDE
    uuids = {guests[name].uuid: rate for name, rate in by_name.items()}
    state_file.replace(rates, json.dumps(uuids), durable=False)

    def where():
        return {name: site.cpus_of(each) for name, each in guests.items()}

    assert where() == LEFT
    agent.configure(pin_vcpus=True)
    agent.start()
    agent.await_round(lambda done: where() == PINNED and not done['errors'])
    with site.domain('four-1') as each:
        assert 'vcpupin' not in each.XMLDesc()
    agent.kill()
    assert where() == PINNED
    assert agent.run('restore').returncode == 0
    assert where() == LEFT

    agent.start()
    agent.await_round(lambda _: where() == PINNED)
    agent.configure(pin_vcpus=False)
    agent.send(signal.SIGHUP)
    agent.await_round(lambda _: where() == LEFT)
    agent.configure(pin_vcpus=True)
    agent.send(signal.SIGHUP)
    agent.await_round(lambda _: where() == PINNED)
    assert agent.stop() == 0
    assert where() == LEFT


def held(done):
    found = agent_site.applied_weights(done)
    return found if found.keys() == RATES.keys() else dict.fromkeys(RATES, 1)


def test_a_vm_that_spends_more_finishes_sooner(site, agent, rates):
    say(site, rates, RATES)
    agent.start()
    agent.await_round(lambda done: is_as(held(done), RATES, 0.02), 30)
    begun_s, before = time.monotonic(), used_s(site)
    ended_s = {}
    try:
        while len(ended_s) < len(RATES):
            processes.wait_until(lambda: False, EVERY_S, EVERY_S)
            now_s, used = time.monotonic() - begun_s, used_s(site)
            for name in RATES.keys() - ended_s.keys():
                if used[name] - before[name] >= WORK_S:
                    site.guests[name].command('cpu 0')
                    ended_s[name] = now_s
            assert now_s < 8 * len(RATES) * WORK_S
    finally:
        for name in RATES:
            site.guests[name].command('cpu 1')
    whole_s = max(ended_s.values())
    found = {name: ended_s[name] / whole_s for name in RATES}
    _tell(found)
    for name, expected in ideal().items():
        assert found[name] == pytest.approx(expected, abs=0.05), found
    assert agent.stop() == 0


def ideal():
    """When each would be done, as a part of the whole.

    What is left of the CPU when one is done goes to the others, by rates.
    """
    left, now, ends = dict.fromkeys(RATES, 1.0), 0.0, {}
    while left:
        price = sum(RATES[name] for name in left)
        ends_in = {
            name: work * price / RATES[name] for name, work in left.items()
        }
        first = min(ends_in, key=ends_in.get)
        step = ends_in[first]
        now += step
        left = {
            name: work - step * RATES[name] / price
            for name, work in left.items()
            if name != first
        }
        ends[first] = now
    return {name: each / now for name, each in ends.items()}


def _tell(found):
    lines = [
        '.. csv-table::',
        '   :header: rate, done after (part of the whole), foreseen',
        '',
    ]
    foreseen = ideal()
    lines += [
        f'   {RATES[name]:g}, {found[name]:.3f}, {foreseen[name]:.3f}'
        for name in RATES
    ]
    TOLD.parent.mkdir(exist_ok=True)
    TOLD.write_text('\n'.join([*lines, '']))
    told = [
        {
            'rate': RATES[name],
            'done_after_part': found[name],
            'foreseen': foreseen[name],
        }
        for name in RATES
    ]
    about = {'test': TEST, 'work_cpu_s': WORK_S, 'guests': told}
    TOLD.with_suffix('.json').write_text(json.dumps(about, indent=1) + '\n')
