# SPDX-License-Identifier: Apache-2.0

"""A network control in a namespace, told what to do by lines of JSON.

Run in the namespace of a node, by tests and measurements: each line of the
input is ``[what, argument]``, each line of the output the answer.
"""

import argparse
from collections.abc import Sequence
import json
import pathlib
import sys
import time
from typing import Any

from nova_fairness.apply import privileged_network
from nova_fairness.apply.network import commands
from nova_fairness.apply.network import control
from nova_fairness.apply.network import settings
from nova_fairness.model import allocation
from nova_fairness.model import instance
from nova_fairness.model import resources


class Remote:
    """Does what a line says.

    :param control: what is told.
    """

    def __init__(self) -> None:
        self.vms: list[instance.Incarnation] = []
        self.control: control.NetworkClasses
        self.tc_seconds = 0.0

    def run(self, operations: Sequence[commands.Operation]) -> list[str]:
        """Run operations, and note how long that takes."""
        started_s = time.monotonic()
        errors = privileged_network.run(operations)
        self.tc_seconds += time.monotonic() - started_s
        return errors

    def is_running(self, key: str) -> bool:
        """Whether a VM is among those that were told of."""
        return any(item.key == key for item in self.vms)

    def do_vms(self, told: dict[str, list[list[str]]]) -> None:
        """Take VMs over: interfaces (MAC, kind, tap) by UUID."""
        self.vms = [
            instance.Incarnation(
                instance.Instance(
                    uuid=uuid,
                    domain_name=uuid,
                    vcpus=1,
                    memory_bytes=1 << 20,
                    nics=tuple(instance.Nic(*nic) for nic in nics),
                ),
                pid=1,
                start_ticks=1,
            )
            for uuid, nics in told.items()
        ]

    def do_read(self, uuids: list[str] | None) -> dict[str, int]:
        """Read the rates of VMs, all that are known unless named."""
        names = [item.instance.uuid for item in self.vms]
        keys = [f'{uuid}/1/1' for uuid in uuids or names]
        values = self.control.read(keys)
        return {key.split('/')[0]: rate for key, rate in values.items()}

    def do_time_read(self, _: object) -> float:
        """Seconds that it takes to read all VMs."""
        started_s = time.monotonic()
        self.do_read(None)
        return time.monotonic() - started_s

    def do_write(self, rates: dict[str, int]) -> dict[str, Any]:
        """Write rates by UUID; give the outcomes and what it took."""
        changes = [
            allocation.Change(
                allocation.Knob(
                    f'{uuid}/1/1', resources.ResourceControl.NETWORK
                ),
                None,
                rate,
            )
            for uuid, rate in rates.items()
        ]
        self.tc_seconds = 0.0
        started_s = time.monotonic()
        outcomes = self.control.write(changes)
        return {
            'seconds': time.monotonic() - started_s,
            'tc_seconds': self.tc_seconds,
            'errors': {
                item.change.knob.incarnation.split('/')[0]: 'gone'
                if item.gone
                else item.error
                for item in outcomes
                if not item.written
            },
        }

    def do_said(self, _: object) -> dict[str, Any]:
        """Everything that the control says of itself."""
        return {
            'availability': self.control.availability(),
            'without_effect': self.control.without_effect(),
            'problems': self.control.problems(),
            'capacity': self.control.capacity,
        }

    def do_settle(self, _: object) -> list[str]:
        """End a round."""
        return list(self.control.settle())

    def do_release(self, _: object) -> list[str]:
        """Take everything away."""
        return list(self.control.release())


def main() -> None:
    """Serve until the input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--layout', default='auto')
    parser.add_argument('--uplink', default='')
    parser.add_argument('--bandwidth', type=float)
    parser.add_argument('--host-rate', type=float)
    parser.add_argument('--record', type=pathlib.Path, required=True)
    parser.add_argument('--helper', action='store_true')
    given = parser.parse_args()
    if given.helper:
        privileged_network.client.prepare()
    else:
        privileged_network.context.client_mode = False
    remote = Remote()
    remote.control = control.NetworkClasses(
        settings.NetworkSettings(
            layout=settings.SteeringKind(given.layout),
            uplink=given.uplink,
            bandwidth=given.bandwidth,
            host_rate=given.host_rate,
        ),
        lambda: remote.vms,
        given.record,
        runner=remote.run,
        is_running=remote.is_running,
    )
    for line in sys.stdin:
        what, argument = json.loads(line)
        answer = getattr(remote, f'do_{what}')(argument)
        sys.stdout.write(json.dumps(answer) + '\n')
        sys.stdout.flush()


if __name__ == '__main__':
    main()
