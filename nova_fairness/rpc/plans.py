# SPDX-License-Identifier: Apache-2.0

"""RPCs about migration plans."""

import abc
from typing import Any

from nova_fairness.rpc import arguments
from nova_fairness.rpc import calls
from nova_fairness.rpc import protocol
from nova_fairness.rpc import roles
from nova_fairness.rpc import spending

Answer = calls.Answer
Context = calls.Context


class PlanCalls(spending.SpendingCalls):
    """The operations on migration plans."""

    @abc.abstractmethod
    def plans(self, marker: str | None, limit: int) -> Answer:
        """Return migration plans, the newest first.

        :param marker: UUID of the last plan of the previous page.
        :raises UnknownPlan: if there is no such plan, or this cloud has no
            plans.
        """

    @abc.abstractmethod
    def plan(self, uuid: str) -> Answer:
        """Return one plan, with its moves.

        :raises UnknownPlan: if there is no such plan, or this cloud has no
            plans.
        """

    @abc.abstractmethod
    def empty(self, host: str) -> Answer:
        """Propose a plan that empties a host.

        :raises UnknownHost: if there is no such host.
        :raises UnknownPlan: if this cloud makes no plans.
        :raises IllegalStep: if another plan has begun, or no server can move.
        """

    @abc.abstractmethod
    def approve(self, uuid: str) -> Answer:
        """Approve a plan, so that it begins.

        :raises UnknownPlan: if there is no such plan, or this cloud makes no
            plans.
        :raises IllegalStep: if it is not proposed, or plans are only shown.
        """

    @abc.abstractmethod
    def stop(self, uuid: str) -> Answer:
        """Stop a plan; moves that have begun are not cancelled.

        :raises UnknownPlan: if there is no such plan, or this cloud has no
            plans.
        :raises IllegalStep: if it has ended.
        """


_OVERSEE = calls.answers(roles.Access.OVERSEE)
_CHANGE = calls.answers(roles.Access.CHANGE)


class PlansEndpoint(spending.SpendingEndpoint):
    """Validates calls and passes them to the operations.

    :param operations: operations of the service.
    """

    _operations: PlanCalls

    def __init__(self, operations: PlanCalls) -> None:
        super().__init__(operations)

    @_OVERSEE
    def list_plans(
        self,
        ctxt: Context,
        marker: Any = None,
        limit: Any = protocol.MOST_REQUESTS,
    ) -> Answer:
        """Return migration plans."""
        return self._operations.plans(*arguments.page(None, marker, limit)[1:])

    @_OVERSEE
    def get_plan(self, ctxt: Context, uuid: Any) -> Answer:
        """Return one plan, with its moves."""
        return self._operations.plan(arguments.name('uuid', uuid))

    @_CHANGE
    def empty_host(self, ctxt: Context, name: Any) -> Answer:
        """Propose a plan that empties a host."""
        return self._operations.empty(arguments.name('name', name))

    @_CHANGE
    def approve_plan(self, ctxt: Context, uuid: Any) -> Answer:
        """Approve a plan, so that it begins."""
        return self._operations.approve(arguments.name('uuid', uuid))

    @_CHANGE
    def stop_plan(self, ctxt: Context, uuid: Any) -> Answer:
        """Stop a plan."""
        return self._operations.stop(arguments.name('uuid', uuid))
