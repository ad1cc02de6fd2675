# SPDX-License-Identifier: Apache-2.0

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from nova_fairness.model import cluster
from nova_fairness.model import pledge
from nova_fairness.planners.border import pledges
from nova_fairness.shares import ledger

NOW, DAY = 1e6, 86400.0
GROUPS = (pledge.PledgeGroup('astro', 'a'), pledge.PledgeGroup('bio', 'b'))
SHARES = {
    'root': pledge.BatchShare('', 1),
    'a': pledge.BatchShare('root', 600),
    'b': pledge.BatchShare('root', 400),
    'a-sub': pledge.BatchShare('a', 7),
    'c': pledge.BatchShare('root', 50),
}
TREE = (
    cluster.Account('site'),
    cluster.Account('astro', 'site', 3.0),
    cluster.Account('bio', 'site', 1.0),
)
OWNER = {'a': 'astro', 'a-sub': 'astro', 'b': 'bio'}


def spent(account, cores, begin, end=None):
    return pledge.Spent(account, cores, NOW + begin, end and NOW + end)


def used(*jobs, kept=None, now=0.0, half_life_s=100.0, cores=10):
    kept = kept or pledges.BatchMemory(NOW - 100.0)
    return pledges.charge_jobs(
        kept, jobs, OWNER, NOW + now, half_life_s, float(cores)
    )


def test_use_of_child_accounts_counts_for_their_group():
    assert pledges.account_by_batch_account(GROUPS, SHARES) == OWNER
    circle = {
        'x': pledge.BatchShare('y', 1),
        'y': pledge.BatchShare('x', 1),
    }
    assert pledges.account_by_batch_account(GROUPS, circle) == {}


def test_jobs_are_charged_for_their_time_since_the_last_charge():
    kept, lacks = used(
        spent('a', 10, -1000, -50),
        spent('a-sub', 4, -25, -5),
        spent('c', 10, -100),
        spent('b', 5, -100),
    )
    fades = ledger.UseLedger(100.0, 0.0).kept
    assert kept.use['astro'] == pytest.approx(
        (fades(50) - fades(100)) + 0.4 * (fades(5) - fades(25))
    )
    # Half of them, since a half-life.
    assert kept.use['bio'] == pytest.approx(0.5 / 2)
    assert kept.at == NOW
    # What runs since a half-life lacks another half.
    assert lacks == {'bio': pytest.approx(0.25)}


def test_repeated_looks_charge_no_job_twice():
    jobs = [spent('a', 8, -100, 100), spent('b', 2, 50, 130)]
    once, _ = used(*jobs, now=200)
    often = pledges.BatchMemory(NOW - 100)
    for now in (-60, -60, 20, 75, 90, 101, 200):
        seen = [
            each
            for each in jobs
            if each.begin <= NOW + now and each.end > often.at
        ]
        often, _ = used(*seen, kept=often, now=now)
    assert often.use == pytest.approx(once.use)


def test_a_clock_set_back_charges_nothing():
    kept, _ = used(spent('a', 8, -300), kept=pledges.BatchMemory(NOW), now=-50)
    assert not kept.use
    assert kept.at == NOW


def test_the_first_reading_of_accounting_charges_nothing():
    kept, _ = used(spent('a', 8, -300), kept=pledges.BatchMemory())
    assert not kept.use
    assert kept.at == NOW


def snapshot(**more):
    """Hosts h1 and h2 are between both sides; h3 is the cloud's."""
    capacity = np.array([[100, 10], [100, 10], [200, 60]], dtype=np.int64)
    return cluster.ClusterSnapshot(
        ('MEMORY_MB', 'VCPU'),
        tuple(cluster.Provider(n, n) for n in ('h1', 'h2', 'h3')),
        cluster.Inventory(capacity, capacity * 0, capacity, capacity * 0 + 1),
        accounts=TREE,
        **more,
    )


HOSTS = frozenset({'h1', 'h2'})


def test_a_fraction_of_hosts_is_the_fraction_of_their_cores():
    found = pledges.capacity_part(snapshot(), HOSTS)
    assert found.tolist() == [0.5, 0.25]
    use = {'astro': np.array([0.1, 0.1]), 'bio': np.array([0.05, 0.0])}
    found = pledges.of_cloud(snapshot(), use, HOSTS)
    assert found == pytest.approx({'astro': 0.4, 'bio': 0.1})
    found = pledges.of_cloud(snapshot(weights={'MEMORY_MB': 1}), use, HOSTS)
    assert found == pytest.approx({'astro': 0.2, 'bio': 0.1})
    assert pledges.of_cloud(snapshot(), use, frozenset())['bio'] == 0


def test_the_queue_counts_batch_for_a_group_and_all_above():
    beside = pledges.BatchUse({'astro': 0.4}, {'bio': 0.2}, HOSTS)
    before = snapshot(history={'astro': np.array([0.1, 0.1])})
    found = pledges.with_batch_use(before, beside)
    assert found.history['astro'].tolist() == pytest.approx([0.3, 0.2])
    assert found.history['site'].tolist() == pytest.approx([0.2, 0.1])
    assert found.granted['bio'].tolist() == pytest.approx([0.1, 0.05])
    assert found.granted['site'].tolist() == pytest.approx([0.1, 0.05])
    assert before.history['astro'].tolist() == [0.1, 0.1]


def stands(use=None, cloud=None, shares=SHARES, **kept):
    kept = pledges.BatchMemory(NOW, use or {}, **kept)
    assert pledges.adjustment_faults(GROUPS, TREE, shares, kept) == []
    return pledges.standings(GROUPS, TREE, shares, kept, cloud or {})


def test_pledges_follow_the_share_tree_and_batch_shares_keep_their_sum():
    first, second = stands()
    assert (first.pledge, second.pledge) == (0.75, 0.25)
    assert (first.share, second.share) == pytest.approx((750, 250), abs=1)
    assert first.share + second.share == 1000
    assert (first.found, second.found) == (600, 400)
    assert first.part == 0
    first, second = stands({'astro': 0.1, 'bio': 0.1}, {'astro': 0.1})
    assert first.part == pytest.approx(2 / 3)
    # Half of three is left beside the one of the other: 3/5.
    assert first.share == pytest.approx(600, abs=1)


@pytest.mark.parametrize(
    ('change', 'said'),
    [
        ({'a': None}, 'no account a'),
        ({'a': pledge.BatchShare('c', 600)}, 'one account above'),
        ({'a': pledge.BatchShare('root', 0)}, 'no share of its own'),
        (
            {
                'a': pledge.BatchShare('root', 1),
                'b': pledge.BatchShare('root', 1),
            },
            'need 200 to be divided',
        ),
    ],
)
def test_the_reason_why_shares_stay_is_reported(change, said):
    shares = {
        name: each for name, each in {**SHARES, **change}.items() if each
    }
    [fault] = pledges.adjustment_faults(
        GROUPS, TREE, shares, pledges.BatchMemory()
    )
    assert said in fault
    [fault] = pledges.adjustment_faults(
        GROUPS, TREE[:-1], SHARES, pledges.BatchMemory()
    )
    assert 'no account bio' in fault


def changed(a, b):
    return {
        **SHARES,
        'a': pledge.BatchShare('root', a),
        'b': pledge.BatchShare('root', b),
    }


def test_only_large_share_changes_are_written():
    found = stands()
    assert pledges.shares_to_set(found, SHARES) == {'a': 750, 'b': 250}
    for near in (730, 770):
        assert pledges.shares_to_set(found, changed(near, 250)) == {}
    assert pledges.shares_to_set(found, changed(750, 270)) == {'b': 250}


def test_an_account_of_no_group_keeps_its_share():
    """Nobody need be on a list to be left alone, and nobody pays for it."""
    for other in (0, 50, 9631):
        present = {**SHARES, 'c': pledge.BatchShare('root', other)}
        found = stands({'astro': 0.1}, {'astro': 0.2}, present)
        given = pledges.shares_to_set(found, present)
        assert given.keys() == {'a', 'b'}
        assert sum(given.values()) == 1000


def given_once():
    found = stands()
    give = pledges.shares_to_set(found, SHARES)
    return pledges.with_original_shares(
        pledges.BatchMemory(), found, give, SHARES
    )


def test_found_shares_survive_a_crash_at_any_time():
    kept = given_once()
    assert kept.found == {'a': 600, 'b': 400}
    # Before or after it was given, or half of it.
    for present in (SHARES, changed(750, 250), changed(750, 400)):
        again = pledges.standings(GROUPS, TREE, present, kept, {})
        assert [each.found for each in again] == [600, 400]
    # Somebody else's value is what is found from now on.
    again = pledges.standings(GROUPS, TREE, changed(50, 250), kept, {})
    assert [each.found for each in again] == [50, 400]
    assert sum(each.share for each in again) == 450


def test_only_shares_that_were_set_are_restored():
    kept = given_once()
    present = changed(750, 250)
    assert pledges.shares_to_restore((), present, kept) == {'a': 600, 'b': 400}
    assert pledges.shares_to_restore(GROUPS[:1], present, kept) == {'b': 400}
    assert pledges.shares_to_restore((), changed(77, 250), kept) == {'b': 400}
    # It is tried until it is so.
    after = pledges.with_original_shares(
        kept, (), {'a': 600, 'b': 400}, present
    )
    assert pledges.shares_to_restore((), present, after) == {
        'a': 600,
        'b': 400,
    }
    assert pledges.shares_to_restore((), changed(600, 400), after) == {}
    last = pledges.with_original_shares(after, (), {}, changed(600, 400))
    assert last.found == last.given == {}


@hypothesis.given(
    st.lists(
        st.tuples(
            st.sampled_from(['a', 'a-sub', 'b', 'c']),
            st.integers(1, 10),
            st.floats(-500, 0),
            st.one_of(st.none(), st.floats(1, 500)),
        ),
        max_size=8,
    ),
    st.randoms(use_true_random=False),
)
def test_order_of_jobs_does_not_matter_and_use_is_bounded(rows, source):
    jobs = [
        spent(name, cores, begin, (lasts and min(begin + lasts, 0.0)) or None)
        for name, cores, begin, lasts in rows
    ]
    kept, lacks = used(*jobs)
    shuffled = source.sample(jobs, len(jobs))
    other, others_lack = used(*shuffled)
    assert other.use == pytest.approx(kept.use)
    assert others_lack == pytest.approx(lacks)
    most = sum(each.cores for each in jobs) / 10
    book = ledger.UseLedger(100.0, 0.0)
    for name in ('astro', 'bio'):
        assert 0 <= kept.use.get(name, 0) <= most * (1 - book.kept(100)) + 1e-9
        assert 0 <= lacks.get(name, 0) <= most + 1e-9
