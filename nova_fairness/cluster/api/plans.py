# SPDX-License-Identifier: Apache-2.0

"""Answers to calls about migration plans."""

import dataclasses
from typing import Any

from nova_fairness import exception
from nova_fairness.cluster.move_plans import plan_controller
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import moments
from nova_fairness.model import plans as model
from nova_fairness.rpc import plans as interface


class PlanOperations(interface.PlanCalls):
    """Answers calls about migration plans, in the leader."""

    _store: store_module.Store
    _planned: plan_controller.PlanController | None

    def plans(self, marker: str | None, limit: int) -> interface.Answer:
        """Return one page of migration plans, the newest first."""
        self._require_controller().last()
        after = None if marker is None else self._require_plan(marker)
        found = self._store.plans.newest_plans(after, limit + 1)
        return {
            'plans': [plan_facts(each) for each in found[:limit]],
            'more': len(found) > limit,
        }

    def plan(self, uuid: str) -> interface.Answer:
        """Return one plan, with its moves."""
        self._require_controller().last()
        return {'plan': full_plan_facts(self._require_plan(uuid))}

    def empty(self, host: str) -> interface.Answer:
        """Propose a plan that moves all servers off a host."""
        return {
            'plan': full_plan_facts(self._require_controller().empty(host))
        }

    def approve(self, uuid: str) -> interface.Answer:
        """Approve a plan, so that its moves start."""
        return {
            'plan': full_plan_facts(self._require_controller().approve(uuid))
        }

    def stop(self, uuid: str) -> interface.Answer:
        """End a plan: no further move starts."""
        return {'plan': full_plan_facts(self._require_controller().stop(uuid))}

    def _require_controller(self) -> plan_controller.PlanController:
        if self._planned is None:
            raise exception.UnknownPlan(
                'this service makes no migration plans: [fairness_plans] mode'
                ' is off'
            )
        return self._planned

    def _require_plan(self, uuid: str) -> model.MigrationPlan:
        found = self._store.plans.read_plan(uuid)
        if found is None:
            raise exception.UnknownPlan(f'there is no plan {uuid}')
        return found


def plan_facts(plan: model.MigrationPlan) -> dict[str, Any]:
    """Return a plan without its moves, as an answer."""
    states = [each.state for each in plan.moves]
    return {
        'uuid': plan.uuid,
        'goal': plan.goal.value,
        'subject': plan.subject,
        'state': plan.state.value,
        'cause': plan.cause.value,
        'explanation': model.cause_sentence(plan.cause, plan.text),
        'made_at': moments.answer(plan.made_at),
        'since': moments.answer(plan.changed_at),
        'until': moments.answer(plan.until),
        'moves_count': len(states),
        'ended_count': sum(each not in model.UNENDED for each in states),
        'empties': list(plan.empties),
        'stays_count': len(plan.stays),
        'promised': dataclasses.asdict(plan.promised),
        'won': plan.won and dataclasses.asdict(plan.won),
    }


def full_plan_facts(plan: model.MigrationPlan) -> dict[str, Any]:
    """Return a plan with its moves in their order, and with the servers
    that stay.
    """
    return {
        **plan_facts(plan),
        'stays': [
            {
                'server': each.server,
                'name': each.name,
                'cause': each.cause.value,
                'explanation': model.cause_sentence(each.cause, each.text),
            }
            for each in plan.stays
        ],
        'moves': [
            {
                'server': each.server,
                'source': each.source,
                'target': each.target,
                'wave': each.wave,
                'cost_mb': each.cost_mb,
                'state': each.state.value,
                'cause': each.cause and each.cause.value,
                'explanation': model.cause_sentence(each.cause, each.text),
                'asked_at': moments.answer(each.asked_at),
                'ended_at': moments.answer(each.ended_at),
                'sent_mb': each.sent_mb,
            }
            for each in plan.moves
        ],
    }
