# SPDX-License-Identifier: Apache-2.0

"""Throttles disks on devices that ignore weights, while VMs compete."""

from collections.abc import Collection
from collections.abc import Iterator
import logging

from nova_fairness.apply.cgroup import disk as disk_control
from nova_fairness.apply.cgroup import throttle as throttle_module
from nova_fairness.decide.controls import disk
from nova_fairness.model import pressure as pressure_model
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

LOG = logging.getLogger(__name__)

_READ = resources.RESOURCES.index('disk_read')
_WRITTEN = resources.RESOURCES.index('disk_written')

Limits = dict[throttle_module.Place, throttle_module.Rates]


class Throttling:
    """Applies limits in each round; off unless configured.

    Limits of an earlier agent are removed at the start, whatever the
    configuration.

    :param throttle: writes the limits.
    :param is_on: whether anything is limited.
    """

    def __init__(
        self, throttle: throttle_module.DiskThrottle, *, is_on: bool
    ) -> None:
        self._throttle = throttle
        self._is_on = is_on
        for problem in throttle.lift():
            LOG.error('%s', problem)

    def apply(
        self,
        pressure: pressure_model.Pressure | None,
        devices: pressure_model.PressureSample | None,
        usage: usage_model.Usage,
        weights: usage_model.Scalars,
        exempt: Collection[str] = frozenset(),
    ) -> tuple[str, ...]:
        """Throttle VMs that compete for a device; remove all other limits.

        :param pressure: of the interval; ``None`` if unknown.
        :param devices: the newest reading, with the devices' I/O schedulers.
        :param usage: its VMs are the rows of all arrays.
        :param weights: (n,) of block I/O, finite, > 0.
        :param exempt: keys of VMs that are not throttled.
        :returns: error messages.
        """
        if not self._is_on or pressure is None or devices is None:
            return self._throttle.lift()
        if pressure.incarnations != usage.incarnations:
            return self._throttle.lift()
        limits = self._limits(pressure, devices, usage, weights)
        return self._throttle.apply(
            {
                place: rates
                for place, rates in limits.items()
                if place[0] not in exempt
            }
        )

    def stop(self) -> tuple[str, ...]:
        """Remove all limits; return error messages."""
        return self._throttle.lift()

    def _limits(
        self,
        pressure: pressure_model.Pressure,
        devices: pressure_model.PressureSample,
        usage: usage_model.Usage,
        weights: usage_model.Scalars,
    ) -> Limits:
        traffic = disk.DiskTraffic(
            read=usage.amounts[:, _READ] / usage.interval_s,
            written=usage.amounts[:, _WRITTEN] / usage.interval_s,
        )
        moved = usage.amounts[:, [_READ, _WRITTEN]].sum(axis=1)
        limits: Limits = {}
        for number, rows in disk.competitors_by_device(pressure, moved):
            if _keeps_weights(devices, number):
                continue
            rates = disk.throttle_rates(weights, traffic, rows)
            for row, pair in rates.items():
                for top in _entry_devices(pressure.disks[row], number):
                    limits[usage.incarnations[row].key, top] = pair
        return limits


def _keeps_weights(
    devices: pressure_model.PressureSample, number: str
) -> bool:
    device = devices.devices.get(number)
    return device is None or any(
        pressure_model.honours(device, file) for file in disk_control.FILES
    )


def _entry_devices(
    disks: tuple[pressure_model.DiskPath, ...], number: str
) -> Iterator[str]:
    """Yield the devices that receive the VM's requests for a device first."""
    for path in disks:
        if number in path.devices:
            yield path.devices[0]
