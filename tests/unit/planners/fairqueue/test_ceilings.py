# SPDX-License-Identifier: Apache-2.0

"""Nobody has more at once than all accounts above them may."""

import hypothesis
from hypothesis import strategies as st
import pytest

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import planner
from nova_fairness.shares import ceilings
from tests.fixtures import small_cloud

ACCOUNTS = (
    cluster.Account('physics', ceiling=(('MEMORY_MB', 900), ('VCPU', 8))),
    cluster.Account('p', 'physics'),
    cluster.Account('p/u', 'p', ceiling=(('VCPU', 5),)),
    cluster.Account('q', 'physics'),
)


def runs(vcpu, project='p', user='u', **more):
    amounts = small_cloud.demand(vcpu).amounts
    return cluster.Running('h', project, amounts, 0.0, user, **more)


def cloud(*requests, **more):
    return small_cloud.cloud(
        [small_cloud.host('h', 64)], requests, accounts=ACCOUNTS, **more
    )


@pytest.mark.parametrize(
    ('asked', 'running', 'over'),
    [
        (small_cloud.waiting_request('r', 5), (), None),
        (small_cloud.waiting_request('r', 6), (), ('p/u', 'VCPU', 6, 0, 5)),
        (
            small_cloud.waiting_request('r', 2, count=3),
            (),
            ('p/u', 'VCPU', 6, 0, 5),
        ),
        (
            small_cloud.waiting_request('r', 3),
            (runs(3),),
            ('p/u', 'VCPU', 3, 3, 5),
        ),
        (
            small_cloud.waiting_request('r', 4),
            (runs(5, 'q'),),
            ('physics', 'VCPU', 4, 5, 8),
        ),
        (
            small_cloud.waiting_request('r', 1, memory=901),
            (),
            ('physics', 'MEMORY_MB', 901, 0, 900),
        ),
        (small_cloud.waiting_request('r', 9, project='other'), (), None),
        # Who is over already may start what takes nothing of it.
        (small_cloud.waiting_request('r', 0), (runs(9),), None),
        (
            small_cloud.waiting_request('r', 9, band=request.Band.PREEMPTIBLE),
            (),
            None,
        ),
        (
            small_cloud.waiting_request('r', 5),
            (runs(5, band=request.Band.PREEMPTIBLE),),
            None,
        ),
    ],
)
def test_a_request_that_would_pass_a_ceiling_is_told_which(
    asked, running, over
):
    found = ceilings.Ceilings(cloud(running=running)).passed([asked])
    assert (found and tuple(found)) == over


def test_a_request_at_a_ceiling_is_told_so_and_delays_no_other():
    requests = (
        small_cloud.waiting_request('first', 4),
        small_cloud.waiting_request('second', 2),
        small_cloud.waiting_request('third', 4, project='q'),
    )
    plan = planner.plan(cloud(*requests), 0.0)
    assert [each.request for each in plan.actions] == ['first', 'third']
    waits = plan.waiting['second']
    assert waits.reserved is None
    assert waits.why == reason.why(
        reason.Reason.OVER_ACCOUNT_CEILING,
        'VCPU of p/u',
        asked=2,
        used=4,
        ceiling=5,
    )
    assert waits.why.sentence == (
        'it asks for 2 VCPU of p/u, which has 4 and may have 5'
    )


@hypothesis.given(
    st.lists(
        st.tuples(
            st.sampled_from(['p', 'q', 'free']),
            st.integers(0, 4),
            st.integers(1, 2),
            st.sampled_from(list(request.Band)),
        ),
        max_size=12,
    )
)
def test_no_plan_passes_a_ceiling_and_requests_below_do_not_wait(wanted):
    requests = [
        small_cloud.waiting_request(
            f'r{n}', vcpu, project, count=count, band=band
        )
        for n, (project, vcpu, count, band) in enumerate(wanted)
    ]
    snapshot = cloud(*requests)
    plan = planner.plan(snapshot, 0.0)
    state = ceilings.Ceilings(snapshot)
    by_uuid = {each.uuid: each for each in requests}
    for action in plan.actions:
        assert state.passed([by_uuid[action.request]]) is None
        state.take(by_uuid[action.request])
    for uuid, waits in plan.waiting.items():
        if waits.why.reason is reason.Reason.OVER_ACCOUNT_CEILING:
            assert state.passed([by_uuid[uuid]])
