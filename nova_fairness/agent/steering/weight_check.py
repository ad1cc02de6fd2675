# SPDX-License-Identifier: Apache-2.0

"""Checks in each round that CPU weights have an effect on this node."""

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


class WeightCheck:
    """Compares the CPU time of VMs with the part that their weights promise.

    :param node: resources of the node.
    :param scale: converts CPU weights to kernel units; ``None`` if this node
        cannot steer the CPU.
    :param scheduler: returns the name of a scheduler that replaces the
        kernel's, or an empty text.
    """

    def __init__(
        self,
        node: node_model.NodeResources,
        scale: scale_module.Scale | None,
        scheduler: Callable[[], str] = scheduler_module.sched_ext_name,
    ) -> None:
        self._node = node
        self._scale = scale
        self._scheduler = scheduler
        self._effect_history = effect.Evidence()

    def check_interval(
        self, used: usage_model.Usage, present: allocation.Allocation
    ) -> round_model.Effect | None:
        """Compare expected and received CPU time of an interval.

        :param used: use of all VMs.
        :param present: kernel values in the interval.
        :returns: ``None`` if this node cannot steer the CPU.
        """
        if self._scale is None:
            return None
        rows, found = self._competing_vms(self._scale, used, present)
        self._effect_history = self._effect_history.with_interval(
            found.followed_part()
        )
        whole = float(found.received.sum()) or np.nan
        expected = np.full(len(used.incarnations), np.nan)
        received = expected.copy()
        expected[rows] = found.divide(found.parts) / whole
        received[rows] = found.received / whole
        return round_model.Effect(
            expected, received, self._effect_history.known_mean
        )

    def with_effect(
        self,
        controls: Mapping[
            resources.ResourceControl, round_model.ControlStatus
        ],
    ) -> Mapping[resources.ResourceControl, round_model.ControlStatus]:
        """Return the state of the controls; a CPU control without effect
        fails.
        """
        working = controls.get(_CPU)
        if (
            working is None
            or not working.works
            or not self._effect_history.shows_no_effect
        ):
            return controls
        name = self._scheduler()
        why = (
            f'{working.why} is written, but VMs follow it by'
            f' {self._effect_history.mean:.0%} only'
        )
        if name:
            why += f': the scheduler {name} (sched_ext) runs in the kernel'
        return {
            **controls,
            _CPU: dataclasses.replace(working, works=False, why=why),
        }

    def _competing_vms(
        self,
        scale: scale_module.Scale,
        used: usage_model.Usage,
        present: allocation.Allocation,
    ) -> tuple[usage_model.Indices, effect.Competition]:
        """Return the VMs that compete by weight, with what they had and
        wanted.
        """
        units = [
            present.get(allocation.Knob(vm.key, _CPU))
            for vm in used.incarnations
        ]
        vms = [vm.instance for vm in used.incarnations]
        now = wants.cpu_interval(used, self._node)
        rows = np.flatnonzero(
            [
                value is not None and bool(ready) and scale.is_steered(vm)
                for vm, value, ready in zip(vms, units, now.ready, strict=True)
            ]
        )
        stall = np.nan_to_num(now.stall)
        wanted = waiting.use_without_waits(now.used, stall, now.most)
        parts = [scale.weight_of_units(units[row] or 0) for row in rows]
        return rows, effect.Competition(
            received=now.used[rows],
            wanted=wanted[rows],
            parts=np.array(parts, dtype=np.float64),
            vcpus=np.array([vms[row].vcpus for row in rows], dtype=float),
        )
