# SPDX-License-Identifier: Apache-2.0

"""Calls about plans of moves."""

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
        """Plans of moves, the newest first.

        :param marker: UUID of the last one of the page before.
        :raises UnknownPlan: if there is no such plan, or none is made here.
        """

    @abc.abstractmethod
    def plan(self, uuid: str) -> Answer:
        """One plan, with its moves.

        :raises UnknownPlan: if there is none, or none is made here.
        """

    @abc.abstractmethod
    def empty(self, host: str) -> Answer:
        """Propose a plan that empties a host.

        :raises UnknownHost: if there is no such host.
        :raises UnknownPlan: if no plan is made here.
        :raises IllegalStep: if another plan has begun, or nothing can move.
        """

    @abc.abstractmethod
    def approve(self, uuid: str) -> Answer:
        """Let a plan begin.

        :raises UnknownPlan: if there is none, or none is made here.
        :raises IllegalStep: if it is not proposed, or plans are only shown.
        """

    @abc.abstractmethod
    def stop(self, uuid: str) -> Answer:
        """End a plan; moves that began are not called back.

        :raises UnknownPlan: if there is none, or none is made here.
        :raises IllegalStep: if it has ended.
        """


_OVERSEE = calls.answers(roles.Access.OVERSEE)
_CHANGE = calls.answers(roles.Access.CHANGE)


class PlansEndpoint(spending.SpendingEndpoint):
    """Judges calls and hands them over.

    :param operations: what the service can do.
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
        """Plans of moves."""
        return self._operations.plans(*arguments.page(None, marker, limit)[1:])

    @_OVERSEE
    def get_plan(self, ctxt: Context, uuid: Any) -> Answer:
        """One plan, with its moves."""
        return self._operations.plan(arguments.name('uuid', uuid))

    @_CHANGE
    def empty_host(self, ctxt: Context, name: Any) -> Answer:
        """Propose a plan that empties a host."""
        return self._operations.empty(arguments.name('name', name))

    @_CHANGE
    def approve_plan(self, ctxt: Context, uuid: Any) -> Answer:
        """Let a plan begin."""
        return self._operations.approve(arguments.name('uuid', uuid))

    @_CHANGE
    def stop_plan(self, ctxt: Context, uuid: Any) -> Answer:
        """End a plan."""
        return self._operations.stop(arguments.name('uuid', uuid))
