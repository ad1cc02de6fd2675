# SPDX-License-Identifier: Apache-2.0

"""Brings the kernel's trees to what they shall be, and remembers whose."""

from collections.abc import Callable
from collections.abc import Sequence

from nova_fairness.apply import network_members
from nova_fairness.apply import network_record
from nova_fairness.apply.network import layout as network_layout
from nova_fairness.apply.network import plan
from nova_fairness.apply.network import settings as network_settings
from nova_fairness.apply.network import state

Runner = Callable[[Sequence[plan.Operation]], list[str]]


class NetworkTrees:
    """The classes of all VMs of a node, as they shall be.

    :param settings: what is configured.
    :param record: where it is kept which class is whose.
    :param runner: as :func:`privileged_network.run`.
    :param read_kernel: reads traffic control.
    :ivar members: who has which class, by key of the incarnation.
    """

    def __init__(
        self,
        settings: network_settings.NetworkSettings,
        record: network_record.NetworkRecord,
        runner: Runner,
        read_kernel: Callable[[], state.Kernel],
    ) -> None:
        self._settings = settings
        self._record = record
        self._runner = runner
        self._read_kernel = read_kernel
        self._content: network_record.Content | None = None
        self.members: network_members.Members = {}

    def load(
        self, kernel: state.Kernel, layout: network_layout.Layout
    ) -> None:
        """Take over, once, what an agent before this one left."""
        if self._content is not None:
            return
        self._content = self._record.load()
        out = layout.uplink or state.IFB_OUT
        self.members = network_members.with_rates(
            self._content.members, kernel.trees.get(out, state.NO_TREE)
        )

    def unfinished(
        self, kernel: state.Kernel, layout: network_layout.Layout
    ) -> frozenset[str]:
        """Name those of whom something is not as it shall be.

        :returns: keys; one that is empty concerns everybody.
        """
        return frozenset(key for key, _ in self._plan(kernel, layout))

    def make(
        self,
        kernel: state.Kernel,
        layout: network_layout.Layout,
        members: network_members.Members,
    ) -> dict[str, str]:
        """Make the trees of these VMs and of no others.

        What will be ours is on record before it is made.

        :returns: why, by key, empty for the node, something failed.
        :raises FairnessError: if nothing of it could be tried.
        """
        before, self.members = self.members, members
        steps = self._plan(kernel, layout)
        ingress = next(
            (str(op[1]) for _, op in steps if op[0] == 'ingress'),
            self._ingress,
        )
        try:
            self._note(network_members.union(before, members), ingress)
            errors = self._runner([operation for _, operation in steps])
        except BaseException:
            self.members = before
            raise
        failed = self._still_wrong(layout, steps, errors)
        if not failed:
            self._note(members, ingress if members else '')
        return failed

    @property
    def _ingress(self) -> str:
        return '' if self._content is None else self._content.ingress

    def _plan(
        self, kernel: state.Kernel, layout: network_layout.Layout
    ) -> tuple[plan.Step, ...]:
        uplink, rate = layout.uplink, self._settings.rate
        if not uplink:
            rate -= self._settings.kept(host_is_seen=False)
        at_taps = layout.kind is network_settings.Kind.TAP
        target = plan.Target(uplink, at_taps, rate, self.members)
        return plan.plan(kernel, target, self._ingress)

    def _note(self, members: network_members.Members, ingress: str) -> None:
        content = network_record.Content(members, ingress)
        if members or (self._content and self._content.members):
            self._record.save(content)
        self._content = content

    def _still_wrong(
        self,
        layout: network_layout.Layout,
        steps: Sequence[plan.Step],
        errors: Sequence[str],
    ) -> dict[str, str]:
        """Judge by the kernel what errors were about."""
        told = {
            key: error
            for (key, _), error in zip(steps, errors, strict=True)
            if error
        }
        if not told:
            return {}
        left = self._plan(self._read_kernel(), layout)
        return {
            key: told.get(key) or f'{operation[0]} has no effect'
            for key, operation in left
        }
