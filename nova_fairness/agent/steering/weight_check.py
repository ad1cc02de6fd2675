# SPDX-License-Identifier: Apache-2.0

"""Proves round by round that CPU weights have an effect on this node."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses

import numpy as np

from nova_fairness.collect import scheduler as scheduler_module
from nova_fairness.decide import effect
from nova_fairness.decide.controls import scale as scale_module
from nova_fairness.measure import wants
from nova_fairness.model import allocation
from nova_fairness.model import node as node_model
from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import waiting

_CPU = resources.ResourceControl.CPU


class Proof:
    """Compares what VMs had of the CPU with what their weights promised.

    :param node: what the node has.
    :param scale: how the CPU counts; ``None`` if this node cannot steer it.
    :param scheduler: names a scheduler that replaces the kernel's, if any.
    """

    def __init__(
        self,
        node: node_model.NodeResources,
        scale: scale_module.Scale | None,
        scheduler: Callable[[], str] = scheduler_module.extension,
    ) -> None:
        self._node = node
        self._scale = scale
        self._scheduler = scheduler
        self._evidence = effect.Evidence()

    def look(
        self, used: usage_model.Usage, present: allocation.Allocation
    ) -> round_model.Effect | None:
        """Judge an interval.

        :param used: by all VMs.
        :param present: what the kernel held in it, kernel units by knob.
        """
        if self._scale is None:
            return None
        rows, found = self._competition(self._scale, used, present)
        self._evidence = self._evidence.after(found.followed())
        whole = float(found.had.sum()) or np.nan
        expected = np.full(len(used.incarnations), np.nan)
        received = expected.copy()
        expected[rows] = found.by(found.parts) / whole
        received[rows] = found.had / whole
        return round_model.Effect(expected, received, self._evidence.told)

    def judged(
        self,
        controls: Mapping[
            resources.ResourceControl, round_model.ControlStatus
        ],
    ) -> Mapping[resources.ResourceControl, round_model.ControlStatus]:
        """Tell which controls work, by what was seen of their effect, too."""
        working = controls.get(_CPU)
        if working is None or not working.works or not self._evidence.is_bad:
            return controls
        name = self._scheduler()
        why = (
            f'{working.why} is written, but VMs follow it by'
            f' {self._evidence.mean:.0%} only'
        )
        if name:
            why += f': the scheduler {name} (sched_ext) runs in the kernel'
        return {
            **controls,
            _CPU: dataclasses.replace(working, works=False, why=why),
        }

    def _competition(
        self,
        scale: scale_module.Scale,
        used: usage_model.Usage,
        present: allocation.Allocation,
    ) -> tuple[usage_model.Indices, effect.Competition]:
        """The VMs that compete by weight, and what each had and wanted."""
        units = [
            present.get(allocation.Knob(vm.key, _CPU))
            for vm in used.incarnations
        ]
        vms = [vm.instance for vm in used.incarnations]
        now = wants.interval(used, self._node)
        rows = np.flatnonzero(
            [
                value is not None and bool(ready) and scale.is_steered(vm)
                for vm, value, ready in zip(vms, units, now.ready, strict=True)
            ]
        )
        stall = np.nan_to_num(now.stall)
        wanted = waiting.closed(now.used, stall, now.most)
        parts = [scale.part(units[row] or 0) for row in rows]
        return rows, effect.Competition(
            had=now.used[rows],
            wanted=wanted[rows],
            parts=np.array(parts, dtype=np.float64),
            vcpus=np.array([vms[row].vcpus for row in rows], dtype=float),
        )
