# SPDX-License-Identifier: Apache-2.0

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from nova_fairness.shares import batch_correction

amounts = st.one_of(st.just(0.0), st.floats(1e-3, 1e3))
groups = st.lists(
    st.tuples(st.floats(0.01, 100), amounts, amounts), min_size=1, max_size=8
)


def columns(found):
    pledges, batch, cloud = np.array(found, dtype=float).T
    return pledges / pledges.sum(), batch, cloud


@pytest.mark.parametrize(
    ('batch', 'cloud', 'expected'),
    [
        # Nobody used anything: pledges alone.
        ([0, 0], [0, 0], [0.75, 0.25]),
        # Nobody used the cloud: the same, whatever was used of batch.
        ([1, 9], [0, 0], [0.75, 0.25]),
        # Both as much of both.
        ([3, 1], [3, 1], [0.75, 0.25]),
        # The first used as much of the cloud: half of its pledge is left.
        ([1, 1], [1, 0], [0.6, 0.4]),
        # Of the cloud alone: as little as there is.
        ([0, 1], [5, 0], [0.0075 / 0.2575, 0.25 / 0.2575]),
    ],
)
def test_a_group_that_used_the_cloud_gets_less_of_batch(
    batch, cloud, expected
):
    found = batch_correction.adjusted_parts(
        np.array([0.75, 0.25]), np.array(batch, float), np.array(cloud, float)
    )
    np.testing.assert_allclose(found, expected)


@hypothesis.given(groups)
def test_batch_alone_counts_use_of_both(found):
    """Slurm's level ``s / b`` orders groups as ``p / (b + c)`` does."""
    pledges, batch, cloud = columns(found)
    shares = batch_correction.adjusted_parts(
        pledges, batch, cloud, least=1e-12
    )
    used = batch > 0
    level = shares[used] / batch[used]
    wanted = pledges[used] / (batch + cloud)[used]
    ratio = level / wanted
    np.testing.assert_allclose(ratio, ratio[:1].repeat(len(ratio)), rtol=1e-9)


@hypothesis.given(groups)
def test_shares_are_bounded_by_pledges_and_add_up(found):
    pledges, batch, cloud = columns(found)
    shares = batch_correction.adjusted_parts(pledges, batch, cloud)
    assert shares.sum() == pytest.approx(1.0)
    # Nobody has less than the least, nor more than if all others had that.
    assert (shares >= batch_correction.LEAST * pledges * (1 - 1e-9)).all()
    assert (shares * batch_correction.LEAST <= pledges * (1 + 1e-9)).all()


@hypothesis.given(groups, st.floats(0.1, 10), st.randoms())
def test_units_and_sequence_of_groups_do_not_matter(found, unit, source):
    pledges, batch, cloud = columns(found)
    shares = batch_correction.adjusted_parts(pledges, batch, cloud)
    np.testing.assert_allclose(
        batch_correction.adjusted_parts(pledges, batch * unit, cloud * unit),
        shares,
        rtol=1e-9,
    )
    places = source.sample(range(len(found)), len(found))
    np.testing.assert_allclose(
        batch_correction.adjusted_parts(
            pledges[places], batch[places], cloud[places]
        ),
        shares[places],
    )


@hypothesis.given(groups, st.integers(0, 10_000))
def test_whole_shares_add_up_and_are_as_near_as_can_be(found, more):
    parts = columns(found)[0]
    total = len(parts) + more
    numbers = batch_correction.whole_shares(parts, total)
    assert numbers.sum() == total
    assert (numbers >= 1).all()
    assert (np.abs(numbers - 1 - parts * more) < 1).all()


def test_partition_director_takes_slots_of_the_cloud_off_shares():
    """``adjust_lsf_shares``: 24,567 slots, of which one group has a tenth."""
    shares = np.array([5000.0, 3000.0, 2000.0])
    found = batch_correction.reduced_shares(
        shares, 24_567, np.array([2457.0, 0, 0])
    )
    assert found.tolist() == [4000, 3000, 2000]
    # Another number of slots: T is an argument.
    found = batch_correction.reduced_shares(
        shares, 10_000, np.array([1000.0, 0, 500])
    )
    assert found.tolist() == [4000, 3000, 1500]


def test_a_blacklisted_group_of_partition_director_keeps_its_own_share():
    """There it would have 9631 of 10,000, whatever others have."""
    shares = np.array([5000.0, 3000, 2000])
    cloud = np.array([1000.0, 900, 0])
    exempt = np.array([False, True, False])
    found = batch_correction.reduced_shares(shares, 10_000, cloud, exempt)
    assert found.tolist() == [4000, 3000, 2000]


def test_a_group_with_more_cloud_than_pledged_has_no_share_below_0():
    """As published it would be (1000 - 2000) / 1 = -1000."""
    found = batch_correction.reduced_shares(
        np.array([1000.0, 9000]), 10_000, np.array([2e3, 0])
    )
    assert found.tolist() == [0, 9000]


@hypothesis.given(
    st.lists(st.integers(1, 99), min_size=2, max_size=5), st.integers(0, 10)
)
def test_where_use_is_as_pledged_both_rules_agree(weights, part):
    """Use of a group is its pledge; the cloud has some of the first's."""
    pledges = np.array(weights) / sum(weights)
    cloud = np.zeros(len(pledges))
    cloud[0] = pledges[0] * part / 10
    ours = batch_correction.adjusted_parts(
        pledges, pledges - cloud, cloud, least=1e-9
    )
    theirs = batch_correction.reduced_shares(pledges * 1e6, 1e6, cloud * 1e6)
    hypothesis.assume(theirs.sum() > 0)
    np.testing.assert_allclose(ours, theirs / theirs.sum(), atol=1e-5)
