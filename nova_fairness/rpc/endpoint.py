# SPDX-License-Identifier: Apache-2.0

"""The RPCs of an agent, documented on the page of the RPC interface."""

import abc
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple

import oslo_messaging

from nova_fairness import exception
from nova_fairness.model import caller
from nova_fairness.rpc import arguments
from nova_fairness.rpc import calls
from nova_fairness.rpc import protocol
from nova_fairness.rpc import roles

Answer = calls.Answer
Context = calls.Context


class AgentCalls(abc.ABC):
    """The operations of an agent.

    They are called in threads of the RPC server, several at the same time; no
    method waits for a round. All answers are JSON types.
    """

    @abc.abstractmethod
    def choose(
        self,
        metric: str | None,
        policy: str | None,
        by: caller.Asker = caller.UNKNOWN,
    ) -> Answer:
        """Create a new epoch; ``None`` keeps the metric or policy of the
        newest epoch.

        :raises UnknownPlugin: if a plugin is not installed on this node.
        :raises NotAllowed: if agents use keys, because then controllers sign
            epochs.
        """

    @abc.abstractmethod
    def take_over(
        self,
        metric: str | None,
        policy: str | None,
        epoch: int,
        origin: str,
        signature: str = '',
        by: caller.Asker = caller.UNKNOWN,
    ) -> Answer:
        """Accept an epoch that a controller or another node created.

        :param signature: signature of the controller, if agents use keys.
        :raises UnknownPlugin: if a plugin is not installed on this node.
        :raises NotAllowed: if the epoch must be signed, and is not.
        :raises Superseded: if a newer epoch is known.
        """

    @abc.abstractmethod
    def pause(self, by: caller.Asker = caller.UNKNOWN) -> Answer:
        """Restore all controls soon, and stop changing them."""

    @abc.abstractmethod
    def resume(self, by: caller.Asker = caller.UNKNOWN) -> Answer:
        """Change weights of VMs again."""

    @abc.abstractmethod
    def reset(self) -> Answer:
        """Set all weights to neutral, and delete the memory of the policy."""

    @abc.abstractmethod
    def prefer(self, preferences: Mapping[str, float | None]) -> Answer:
        """Set the preferences of owners among their own VMs.

        :param preferences: numbers by UUID; ``None`` removes a preference.
        :raises BadArgument: if a number cannot be used.
        """

    @abc.abstractmethod
    def status(self) -> Answer:
        """Return the state of the agent."""

    @abc.abstractmethod
    def instances(self) -> Answer:
        """Return the state of the VMs of this node."""

    @abc.abstractmethod
    def users(self) -> Answer:
        """Return the state of the users of all known nodes."""

    @abc.abstractmethod
    def projects(self) -> Answer:
        """Return the state of the projects of this node, or of all known
        nodes.
        """

    @abc.abstractmethod
    def usage(self) -> Answer:
        """Return the use of each user as a fraction of all known nodes."""

    @abc.abstractmethod
    def idle(self, at_least_s: float) -> Answer:
        """Return the idle VMs of this node.

        :param at_least_s: shortest idle time, in seconds.
        """

    @abc.abstractmethod
    def lacking(self) -> Answer:
        """Return the CPUs of this node that its VMs want and get."""

    @abc.abstractmethod
    def plugins(self) -> Answer:
        """Return the metrics and policies that are installed on this node."""

    @abc.abstractmethod
    def instance(self, uuid: str) -> Answer:
        """Return the explanation of the weights and usage of a VM.

        :raises UnknownInstance: if the VM is not on this node.
        """

    @abc.abstractmethod
    def preview(self, metric: str | None) -> Answer:
        """Forecast the CPU time of the VMs with enforced weights.

        :param metric: its name; ``None`` for each installed metric.
        :raises UnknownPlugin: if the metric is not installed on this node.
        """


class _ChoiceArguments(NamedTuple):
    """The choice in a call, unchecked."""

    metric: Any
    policy: Any
    epoch: Any
    origin: Any
    signature: Any


_READ = calls.answers(roles.Access.READ)
_CHANGE = calls.answers(roles.Access.CHANGE)


class FairnessEndpoint:
    """Validates calls and passes them to the operations.

    :param operations: operations of the agent.
    """

    target = oslo_messaging.Target(version=protocol.VERSION)

    def __init__(self, operations: AgentCalls) -> None:
        self._operations = operations

    @_CHANGE
    def set_metric(
        self,
        ctxt: Context,
        name: Any,
        epoch: Any = None,
        policy: Any = None,
        origin: Any = None,
        signature: Any = None,
    ) -> Answer:
        """Set the metric of the domain.

        :param epoch: epoch in the answer of another node, which this node
            accepts; ``None`` creates a new one.
        :param policy: policy in that answer.
        :param origin: origin in that answer.
        :param signature: signature of a controller, if agents use keys.
        """
        chosen = _ChoiceArguments(name, policy, epoch, origin, signature)
        return self._set_choice(chosen, calls.asker(ctxt), new='metric')

    @_CHANGE
    def set_policy(
        self,
        ctxt: Context,
        name: Any,
        epoch: Any = None,
        metric: Any = None,
        origin: Any = None,
        signature: Any = None,
    ) -> Answer:
        """Set the policy of the domain; see :meth:`set_metric`."""
        chosen = _ChoiceArguments(metric, name, epoch, origin, signature)
        return self._set_choice(chosen, calls.asker(ctxt), new='policy')

    def _set_choice(
        self, given: '_ChoiceArguments', by: caller.Asker, new: str
    ) -> Answer:
        arguments.name(new, getattr(given, new))
        chosen = (
            arguments.optional_name('metric', given.metric),
            arguments.optional_name('policy', given.policy),
        )
        of_epoch = arguments.optional_epoch(given.epoch)
        source = arguments.optional_name('origin', given.origin)
        signature = arguments.optional_name('signature', given.signature)
        if of_epoch is None:
            return self._operations.choose(*chosen, by)
        if source is None:
            raise exception.BadArgument(
                'epoch is given without origin; expected both, from the '
                'answer of the node that made the epoch'
            )
        return self._operations.take_over(
            *chosen, of_epoch, source, signature or '', by
        )

    @_CHANGE
    def pause(self, ctxt: Context) -> Answer:
        """Pause enforcement on this node, also across restarts."""
        return self._operations.pause(calls.asker(ctxt))

    @_CHANGE
    def resume(self, ctxt: Context) -> Answer:
        """End the pause."""
        return self._operations.resume(calls.asker(ctxt))

    @_CHANGE
    def reset(self, ctxt: Context) -> Answer:
        """Set all weights to neutral and start again."""
        return self._operations.reset()

    @_CHANGE
    def set_preferences(self, ctxt: Context, preferences: Any) -> Answer:
        """Set the preferences of owners among their own VMs.

        :param preferences: number by UUID of a VM, ``None`` to remove it;
            preferences of VMs elsewhere apply when these VMs arrive.
        """
        return self._operations.prefer(arguments.numbers(preferences))

    @_READ
    def get_status(self, ctxt: Context) -> Answer:
        """Return the state of the agent."""
        return self._operations.status()

    @_READ
    def list_instances(self, ctxt: Context) -> Answer:
        """Return the state of the VMs of this node."""
        return self._operations.instances()

    @_READ
    def list_users(self, ctxt: Context) -> Answer:
        """Return the state of the users of all known nodes."""
        return self._operations.users()

    @_READ
    def list_projects(self, ctxt: Context) -> Answer:
        """Return the state of the projects of this node, or of all known
        nodes.
        """
        return self._operations.projects()

    @_READ
    def get_usage(self, ctxt: Context) -> Answer:
        """Return the use of each user as a fraction of all known nodes."""
        return self._operations.usage()

    @_READ
    def get_idle(self, ctxt: Context, at_least_s: Any = None) -> Answer:
        """Return the idle VMs of this node.

        :param at_least_s: shortest idle time, in seconds; ``None``: any.
        """
        least_s = arguments.optional_number('at_least_s', at_least_s)
        return self._operations.idle(least_s or 0.0)

    @_READ
    def get_lacking(self, ctxt: Context) -> Answer:
        """Return the CPUs of this node that its VMs want and get."""
        return self._operations.lacking()

    @_READ
    def get_plugins(self, ctxt: Context) -> Answer:
        """Return the metrics and policies that are installed on this node."""
        return self._operations.plugins()

    @_READ
    def get_instance(self, ctxt: Context, uuid: Any) -> Answer:
        """Return the explanation of the weights and usage of a VM.

        :param uuid: UUID of the VM.
        """
        return self._operations.instance(arguments.name('uuid', uuid))

    @_READ
    def get_preview(self, ctxt: Context, metric: Any = None) -> Answer:
        """Forecast the CPU time of the VMs with enforced weights.

        :param metric: its name; ``None`` for each installed metric.
        """
        return self._operations.preview(
            arguments.optional_name('metric', metric)
        )
