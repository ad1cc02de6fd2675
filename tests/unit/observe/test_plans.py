# SPDX-License-Identifier: Apache-2.0

"""What is told of plans of moves, as the page says."""

import dataclasses
import json
import re

from nova_fairness.model import plans as model
from nova_fairness.observe import notices
from nova_fairness.observe import plans
from nova_fairness.observe import queue
from tests.fixtures import documented
from tests.fixtures import manual_fields
from tests.fixtures import store_contract

PAGE = 'notifications-plans.rst'
PLAN = store_contract.make_plan()
M, C = model.MoveEvent, model.PlanCause


def told():
    """A notice of every kind there is."""
    found = list(plans.change_notices(None, PLAN, 'c1'))
    for state in set(model.PlanState) - {model.PlanState.PROPOSED}:
        after = dataclasses.replace(PLAN, state=state)
        found += plans.change_notices(PLAN, after, 'c1')
    won = dataclasses.replace(PLAN, won=model.PlanOutcome(moves=1))
    found += plans.change_notices(PLAN, won, 'c1')
    for state in model.MoveState:
        move = dataclasses.replace(PLAN.moves[0], state=state, cause=C.ASKED)
        other = next(each for each in model.MoveState if each is not state)
        before = dataclasses.replace(PLAN.moves[0], state=other)
        found += plans.change_notices(
            PLAN.with_move(0, before), PLAN.with_move(0, move), 'c1'
        )
    return found


def test_the_page_names_every_event_and_every_field():
    page = manual_fields.page_with_schemas(PAGE)
    said = re.findall(
        r'^``(fairness\.plan(?:_move)?\.\w+)``$', page, re.MULTILINE
    )
    found = told()
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


def test_an_unchanged_move_is_not_notified():
    assert list(plans.change_notices(PLAN, PLAN, 'c1')) == []
    seen = PLAN.with_move(0, dataclasses.replace(PLAN.moves[0], sent_mb=3))
    assert list(plans.change_notices(PLAN, seen, 'c1')) == []


def test_a_notified_move_names_its_target():
    moving = PLAN.moves[0].stepped(M.ASK, 60.0, C.ASKED)
    [notice] = plans.change_notices(PLAN, PLAN.with_move(0, moving), 'c1')
    assert notice.payload['move'] == {
        'number': 0, 'server': 's1', 'source': 'ü1', 'target': 'h2',
        'state': 'moving', 'cause': 'asked',
        'explanation': 'Nova was asked for it',
    }  # fmt: skip
    assert notice.payload['at'] == '1970-01-01T00:01:00Z'


def test_every_cause_has_a_sentence():
    for cause in model.PlanCause:
        assert model.cause_sentence(cause, 'x').endswith(': x')
    assert model.cause_sentence(None, '') == ''


def test_a_process_that_does_not_act_knows_of_no_host():
    idle = plans.PlansStatus({('balance', 'done'): 1}, {})
    collector = queue.QueueCollector(None, None, None, lambda: idle)
    assert [each.name for each in collector.collect()] == [
        'nova_fairness_plan_entered_plans',
        'nova_fairness_plan_entered_moves',
    ]
