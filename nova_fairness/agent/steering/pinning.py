# SPDX-License-Identifier: Apache-2.0

"""Pins vCPUs to cores of the host by the spending rates of their VMs."""

from collections.abc import Sequence
import logging

from nova_fairness.apply.cgroup import pins as pins_module
from nova_fairness.model import instance
from nova_fairness.model import usage as usage_model
from nova_fairness.planners.market import cores as cores_module

LOG = logging.getLogger(__name__)


class Pinning:
    """Applies pins in each round.

    Pins of an earlier agent are removed at the start, whatever the
    configuration.

    :param pins: writes the pins.
    """

    def __init__(self, pins: pins_module.VcpuPins) -> None:
        self._pins = pins
        for problem in pins.lift():
            LOG.error('%s', problem)

    def apply(
        self,
        vms: Sequence[instance.Incarnation],
        rates: usage_model.Scalars | None,
    ) -> tuple[str, ...]:
        """Pin the vCPUs of VMs without pins of other programs; unpin other
        VMs.

        :param vms: VMs that may be pinned.
        :param rates: (n,) spending rates of the VMs, > 0; ``None`` if all are
            equal.
        :returns: error messages.
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
        places = cores_module.assign_cores(servers, len(cores))
        return self._pins.apply(
            {
                (key, number): cores[core]
                for key, on in places.items()
                for number, core in enumerate(on)
            }
        )

    def stop(self) -> tuple[str, ...]:
        """Remove all pins; return error messages."""
        return self._pins.lift()
