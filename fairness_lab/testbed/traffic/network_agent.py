# SPDX-License-Identifier: Apache-2.0

"""Talks to a network control that runs in the namespace of a node."""

from collections.abc import Mapping
from collections.abc import Sequence
import json
import pathlib
import subprocess
import sys
from typing import Any

from fairness_lab.testbed.traffic import wire
from nova_fairness import exception


class NetworkAgent:
    """A control of its own process; end it as a crash would, if need be.

    :param network: where it runs.
    :param record: path of its record.
    :param options: of :mod:`fairness_lab.testbed.traffic.network_remote`.
    """

    def __init__(
        self,
        network: wire.Wire,
        record: pathlib.Path,
        options: Sequence[str],
    ) -> None:
        module = 'fairness_lab.testbed.traffic.network_remote'
        self._process = network.popen(
            'node',
            [
                *(sys.executable, '-W', 'ignore', '-m', module),
                *('--record', str(record), *options),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def ask(self, what: str, argument: object = None) -> Any:
        """Have it do something.

        :raises LabError: if it ended.
        """
        if self._process.stdin is None or self._process.stdout is None:
            raise exception.LabError('the control of the network has no pipe')
        line = json.dumps([what, argument]) + '\n'
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise exception.LabError(
                f'the control of the network ended at {what}'
            )
        return json.loads(answer)

    def see(self, places: Sequence[wire.WiredGuest]) -> None:
        """Tell it which guests there are."""
        self.ask(
            'vms',
            {
                place.name: [
                    [mac, 'bridge', tap]
                    for mac, tap in zip(place.macs, place.taps, strict=True)
                ]
                for place in places
            },
        )

    def read(self) -> dict[str, int]:
        """Read the rate of every guest, by name."""
        return dict(self.ask('read'))

    def write(self, rates: Mapping[str, int]) -> dict[str, str]:
        """Write rates; give what failed, by name."""
        self.read()
        return dict(self.ask('write', dict(rates))['errors'])

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()
        self._process.wait()
