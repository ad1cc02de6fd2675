# SPDX-License-Identifier: Apache-2.0

"""VCPUs get cores of their host by what is spent for their VMs."""

from collections.abc import Sequence
import logging

from nova_fairness.apply.cgroup import pins as pins_module
from nova_fairness.model import instance
from nova_fairness.model import usage as usage_model
from nova_fairness.planners.market import cores as cores_module

LOG = logging.getLogger(__name__)


class Pinning:
    """Brings pins into force round by round.

    Pins that an earlier agent left in force are lifted at once, whatever is
    configured now.

    :param pins: writes them.
    """

    def __init__(self, pins: pins_module.VcpuPins) -> None:
        self._pins = pins
        for problem in pins.lift():
            LOG.error('%s', problem)

    def round(
        self,
        vms: Sequence[instance.Incarnation],
        rates: usage_model.Scalars | None,
    ) -> tuple[str, ...]:
        """Pin the VCPUs of VMs without foreign pins; let others go.

        :param vms: that may be pinned.
        :param rates: (n,) of them, > 0; ``None`` if all are alike.
        :returns: what went wrong.
        """
        cores = self._pins.cores()
        if not cores:
            return self._pins.lift()
        spent = [1.0] * len(vms) if rates is None else rates.tolist()
        servers = [
            (vm.key, rate, vm.instance.vcpus)
            for vm, rate in zip(vms, spent, strict=True)
            if not vm.instance.dedicated_cpus
            and self._pins.may_pin(vm.key, vm.instance.vcpus, cores)
        ]
        places = cores_module.assigned(servers, len(cores))
        return self._pins.apply(
            {
                (key, number): cores[core]
                for key, on in places.items()
                for number, core in enumerate(on)
            }
        )

    def stop(self) -> tuple[str, ...]:
        """Let all go that were pinned."""
        return self._pins.lift()
