# SPDX-License-Identifier: Apache-2.0

import hypothesis
from hypothesis import strategies as st
import numpy as np

from fairness_lab.queue_sim import published_victims
from nova_fairness.planners.preemption import candidates
from nova_fairness.planners.preemption import local_search
from nova_fairness.planners.preemption import victims
from nova_fairness.planners.preemption import youngest
from nova_fairness.testing import victims_contract


def full(hosts, prices, amounts):
    """Hosts without room, each with the same number of parties of one CPU."""
    each = len(prices) // hosts
    count = len(prices)
    return candidates.VictimCandidates(
        free=np.zeros((1, hosts), np.int64),
        party=np.arange(count),
        row=np.repeat(np.arange(hosts), each),
        amounts=np.array(amounts, np.int64)[:, np.newaxis],
        servers=tuple((f's{n}',) for n in range(count)),
        owner=np.zeros(count, np.intp),
        since=np.zeros(count),
        price=np.array(prices, float),
        level=np.ones(1),
        step=np.zeros(count),
        now=1e6,
    )


def need(vcpus, hosts, may, rows=None, limit=None):
    rows = np.ones(hosts, bool) if rows is None else np.array(rows)
    limit = np.full(hosts, 9) if limit is None else np.array(limit)
    return candidates.Need(
        (candidates.Piece(np.array([vcpus]), rows),), limit, may
    )


def two(field, limits=(None, None)):
    may = np.ones(len(field.servers), bool)
    return [need(2, 2, may, limit=limits[0]), need(1, 2, may, limit=limits[1])]


def put(field, needs, rows, parties):
    return candidates.assigned(field, [((row,),) for row in rows], parties)


def test_a_server_changes_its_host_if_that_costs_less():
    field = full(2, [5.0, 5.0, 1.0, 1.0], [1, 1, 1, 1])
    needs = two(field)
    dear = put(field, needs, [0, 1], [0, 1, 2])
    better = local_search.improve_choices(needs, field, dear)
    assert victims.choices_fault(needs, field, better) == ''
    assert candidates.price(field, dear) == 11.0
    # Both on the second host have no room: one party of the first leaves.
    assert candidates.price(field, better) == 7.0


def test_no_host_gets_more_than_its_limit():
    field = full(2, [5.0, 5.0, 1.0, 1.0], [1, 1, 1, 1])
    needs = two(field, limits=([1, 0], None))
    dear = put(field, needs, [0, 1], [0, 1, 2])
    assert local_search.improve_choices(needs, field, dear) == dear


def test_a_choice_that_gets_no_cheaper_stays():
    field = full(2, [1.0, 1.0, 1.0, 1.0], [1, 1, 1, 1])
    needs = two(field)
    found = put(field, needs, [0, 1], [0, 1, 2])
    assert local_search.improve_choices(needs, field, found) == found


def test_too_many_servers_stay_as_they_are(monkeypatch):
    field = full(2, [5.0, 5.0, 1.0, 1.0], [1, 1, 1, 1])
    needs = two(field)
    dear = put(field, needs, [0, 1], [0, 1, 2])
    monkeypatch.setattr(local_search, '_MOST', 1)
    assert local_search.improve_choices(needs, field, dear) == dear


def test_the_local_search_ends(monkeypatch):
    needs, field = victims_contract.make_case(12, hosts=8, needs=3)
    chosen = published_victims.Chance().choose(needs, field)
    looked = []
    kept = local_search._Search._evaluate_host
    monkeypatch.setattr(local_search, 'LOOKS', 20)
    monkeypatch.setattr(
        local_search._Search,
        '_evaluate_host',
        lambda self, *key: looked.append(key) or kept(self, *key),
    )
    found = local_search.improve_choices(needs, field, chosen)
    assert victims.choices_fault(needs, field, found) == ''
    assert len(looked) <= 20 + len(local_search._Search(needs, field).servers)


@hypothesis.given(
    st.integers(0, 2**31), st.integers(1, 3), st.sampled_from('ab')
)
def test_the_local_search_never_raises_costs_and_keeps_room(seed, count, by):
    needs, field = victims_contract.make_case(seed, needs=count)
    choose = {
        'a': published_victims.Chance(),
        'b': youngest.Youngest(),
    }[by]
    before = choose.choose(needs, field)
    hypothesis.assume(None not in before)
    after = local_search.improve_choices(needs, field, before)
    assert victims.choices_fault(needs, field, after) == ''
    assert candidates.price(field, after) <= candidates.price(
        field, before
    ) * (1 + 1e-9)
