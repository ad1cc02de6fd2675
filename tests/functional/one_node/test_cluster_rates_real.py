# SPDX-License-Identifier: Apache-2.0

"""Rates of groups divide a CPU among real guests, and their use is charged.

Agent, Redis, driver, service and store are real; Nova and Placement are not.
"""

import json

import pytest

from nova_fairness.runtime import state_file
from nova_fairness.shares import spending
from tests.functional import agent_process
from tests.functional.agent_site import FOUND
from tests.functional.one_node import test_cluster_shares_real

pytestmark = pytest.mark.real

redis = test_cluster_shares_real.redis
shares = test_cluster_shares_real.shares
TOP, URL = test_cluster_shares_real.TOP, test_cluster_shares_real.URL
ROUNDS, LOOKED_AT = 4, 6
"""After which rates hold, of which one is for the call; and for how long it
is looked."""


@pytest.fixture
def groups(tmp_path):
    return tmp_path / 'groups.json'


@pytest.fixture
def spent(tmp_path):
    return tmp_path / 'spent.json'


def say(site, groups, **rates):
    servers = {
        guest.uuid: name.replace('-', '_')
        for name, guest in site.guests.items()
    }
    text = json.dumps({'servers': servers, 'rates': rates})
    state_file.replace(groups, text, durable=False)


@pytest.fixture
def service(site, redis, tmp_path, shares, groups, spent):
    say(site, groups, ann_1=30, ann_2=30, bob_1=30)
    with test_cluster_shares_real.serving(
        site, tmp_path, shares, '', groups, spent
    ) as running:
        yield running


@pytest.fixture
def agent(site, service, tmp_path):
    made = test_cluster_shares_real.Served(
        site.node,
        tmp_path,
        metric='SpendingRate',
        policy='proportional',
        rates='cluster',
        interval=1,
    )
    made.start()
    yield made
    made.close()
    assert site.shares() == FOUND


def used_s(site):
    found = {}
    for name in site.guests:
        with site.domain(name) as each:
            found[name.replace('-', '_')] = each.info()[4] / 1e9
    return found


def gained(site, agent):
    """CPU seconds over some rounds."""
    before = used_s(site)
    agent.await_number(agent.round + LOOKED_AT)
    return {name: used - before[name] for name, used in used_s(site).items()}


def parts(amounts):
    total = sum(amounts.values())
    return {name: each / total for name, each in amounts.items()}


def test_guests_get_cpu_by_spending_rates_and_groups_are_charged(
    site, agent, service, groups, spent
):
    agent.await_round(lambda done: done['round'] >= 2 * ROUNDS)
    even = dict.fromkeys(('ann_1', 'ann_2', 'bob_1'), 30)
    assert parts(gained(site, agent)) == pytest.approx(parts(even), rel=0.1)
    wanted = {'ann_1': 10, 'ann_2': 30, 'bob_1': 90}
    say(site, groups, **wanted)
    agent.await_number(agent.round + ROUNDS)
    units = json.loads(spent.read_text()).get('p/u', 0)
    got = gained(site, agent)
    assert parts(got) == pytest.approx(parts(wanted), rel=0.1)

    # A change of a rate writes what was charged until then.
    say(site, groups, **{**wanted, 'ann_1': 11})
    agent.await_number(agent.round + ROUNDS)
    charged = json.loads(spent.read_text())['p/u'] - units
    owed = sum(wanted[name] * used for name, used in got.items())
    per_second = charged / spending.UNIT * 3600 / owed
    # Rounds before and after are in it.
    assert 0.9 < per_second < 3

    # What was said last counts while the service is away.
    service.terminate()
    assert service.wait(agent_process.PATIENCE_S) == 0
    agent.await_number(agent.round + ROUNDS)
    later = parts(gained(site, agent))
    assert later == pytest.approx(parts({**wanted, 'ann_1': 11}), rel=0.1)
