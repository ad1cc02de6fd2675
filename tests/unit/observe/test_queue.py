# SPDX-License-Identifier: Apache-2.0

"""What is told of requests, and that the page says the same."""

import json
import re

import pytest

from nova_fairness.model import cluster
from nova_fairness.model import queue as queue_model
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.observe import border
from nova_fairness.observe import notices
from nova_fairness.observe import plans
from nova_fairness.observe import queue
from tests.fixtures import documented
from tests.fixtures import manual_fields
from tests.fixtures import small_cloud

PAGE = 'notifications-requests.rst'
WHY = reason.why(reason.Reason.NO_ROOM, 'VCPU', asked=8, free=2)
SEEN = queue_model.Queue(
    failures={'request': 2},
    quarantined={'request': 1},
    leads=True, seen_at=1000.0, waiting={('p1', 'no_room'): 3},
    oldest_at=900.0, doubtful=1, entered={'waiting': 5}, waited_s=7.5,
    left={'gone': 2}, warned={'safe': 1}, cycles=9, cycles_failed=2,
    calibrated=cluster.EstimateQuality(40, 0.5, 0.9, 1.5, -60.0),
    preempted=queue_model.PreemptionOutcomes(
        {('makes_room', 'freed'): 2}, 1200.0, 7200.0, 1, 700.0
    ),
)  # fmt: skip

BORDER = border.BorderStatus(
    {('ask', 'demand'): 2},
    1000.0,
    {'batch': 3},
    {('batch', 'used'): 8.0},
    1,
    {'physics': 0.6},
    {('physics', 'batch'): 0.3},
)

PLANS = plans.PlansStatus(
    {('balance', 'done'): 2}, {('moved', 'arrived'): 3}, 9.0
)


def told(state):
    asked = small_cloud.waiting_request('r1', count=2, state=state)
    return queue.notice(asked, WHY, 60.0, 'c1')


def test_the_page_names_every_event_and_every_field():
    page = manual_fields.page_with_schemas(PAGE)
    found = [each for each in map(told, request.State) if each]
    said = re.findall(r'^``(fairness\.request\.\w+)``$', page, re.MULTILINE)
    assert [each.event for each in found] == [
        f'fairness.request.{each}' for each in queue.EVENTS.values()
    ]
    assert sorted(said) == sorted(each.event for each in found)
    fields = documented.documented_fields(page)
    for each in found:
        payload = json.loads(json.dumps(each.payload))
        assert payload.keys() == fields.keys()
        for name, value in payload.items():
            assert documented.has_documented_type(value, fields[name]), name
        text = page.split(f'``{each.event}``\n')[1].split('\n``')[0]
        warns = each.priority == notices.WARN
        assert ('Priority ``warn``' in text) == warns


def test_the_page_names_every_metric():
    collector = queue.QueueCollector(
        lambda: SEEN, lambda: ({'waiting': 1}, True), lambda: BORDER
    )
    names = [
        each.name + ('_total' if each.type == 'counter' else '')
        for each in collector.collect()
    ]
    page = manual_fields.page_of_metrics()
    rows = re.findall(
        r'^``(nova_fairness_(?:queue|relay|partition)_\w+)`` \(',
        page,
        re.MULTILINE,
    )
    assert sorted(rows) == sorted(names)


@pytest.mark.parametrize('state', ['reserved', 'sending'])
def test_reversible_steps_are_not_notified(state):
    assert told(request.State(state)) is None


def test_a_process_that_does_not_lead_knows_of_no_waiting_request():
    idle = queue_model.Queue(False, None, {}, None, 0, {}, 0.0, {}, 4, 0)
    collector = queue.QueueCollector(lambda: idle, None)
    names = {each.name for each in collector.collect()}
    assert not any('waiting' in name or 'timestamp' in name for name in names)
    assert 'nova_fairness_queue_leads_bool' in names


def test_the_status_of_the_queue_is_json():
    told_json = json.loads(
        json.dumps(queue.QueueCollector(lambda: SEEN, None).status())
    )
    assert told_json['waiting'] == [
        {'project': 'p1', 'reason': 'no_room', 'count': 3}
    ]
    assert told_json['preempted']['ended'] == [
        {'reason': 'makes_room', 'outcome': 'freed', 'count': 2}
    ]
    assert queue.QueueCollector(None, lambda: ({}, False)).status() is None
