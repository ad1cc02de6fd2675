# SPDX-License-Identifier: Apache-2.0

"""The inner half of ``memory_v2.py``: runs inside the machine."""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import platform
import sys
import tempfile
import time

from tests.fixtures.v2_guest import compute
from tests.fixtures.v2_guest import scarcity
from tests.fixtures.v2_guest import vms
from tests.fixtures.v2_guest import walker
from tests.functional import agent_process

agent_process.PATIENCE_S = vms.PATIENCE_S
SAMPLE_S = 1.0


class Stage:
    """A node with an agent that at first only looks on."""

    def __init__(self, where, options):
        self._options = options
        self.sizes = scarcity.Sizes(
            options.node_mib,
            options.light_mib,
            options.heavy_mib,
            options.light_rate,
            options.heavy_rate,
        )
        self._where = where
        self.phases = []

    def run(self):
        """Run all phases; give what was measured."""
        with contextlib.ExitStack() as last:
            node = compute.Compute()
            last.callback(node.stop)
            node.start()
            print('libvirt answers', flush=True)
            start = vms.Starter(
                node.connect(), walker.build(self._where), self._where
            )
            last.callback(start.close)
            reserved = last.enter_context(scarcity.node(self.sizes))
            agent = agent_process.Agent(
                compute.LocalNode(),
                self._where,
                interval=self._options.interval,
                metric=self._options.metric,
                controls='memory',
                enforce=False,
            )
            with agent.config.open('a') as file:
                file.write(f'[fairness_node]\nreserved_memory = {reserved}\n')
            last.callback(agent.close)
            agent.start()
            agent.await_round(lambda done: not done['enforced'])
            scarcity.shrink(self.sizes)
            print('the agent looks on', flush=True)
            return self._phases(start, agent)

    def _phases(self, start, agent):
        heavy = self.sizes.start(start, 'heavy')
        self._measure('heavy alone', 0, heavy)
        start.end(heavy)
        light = self.sizes.start(start, 'light')
        self._measure('light alone', 0, light)
        heavy = self.sizes.start(start, 'heavy')
        found = scarcity.read_memory_lows(light, heavy)
        settle = self._options.settle
        self._measure('both, without agent', settle, light, heavy)
        text = agent.config.read_text()
        agent.config.write_text(
            text.replace('enforce = False', 'enforce = True')
        )
        agent.send(agent_process.signal.SIGHUP)
        agent.await_round(_is_steered)
        self._measure('both, with agent', settle, light, heavy)
        steered = scarcity.read_memory_lows(light, heavy)
        newest = agent.rounds()[-1]
        code = agent.stop()
        after = scarcity.read_memory_lows(light, heavy)
        for vm in (light, heavy):
            start.end(vm)
        return {
            'phases': self.phases,
            'memory_low': {
                'found': found,
                'steered': steered,
                'after_stop': after,
            },
            'agent': {'exit_code': code, 'newest_round': newest},
            'machine': {'kernel': platform.release(), 'cpus': os.cpu_count()},
            'swap': pathlib.Path('/proc/swaps').read_text().splitlines()[1:],
        }

    def _measure(self, name, settle_s, *chosen):
        """Sample a phase; its first seconds do not count."""
        samples = [scarcity.count(*chosen)]
        first = samples[0].at_s
        while samples[-1].at_s - first < settle_s + self._options.seconds:
            time.sleep(SAMPLE_S)
            samples.append(scarcity.count(*chosen))
        began = next(item for item in samples if item.at_s - first >= settle_s)
        rates = {
            vm.name: scarcity.fault_rate(began, samples[-1], vm.name)
            for vm in chosen
        }
        touches = {
            vm.name: scarcity.touch_rate(began, samples[-1], vm.name)
            for vm in chosen
        }
        print(name, rates, touches, flush=True)
        self.phases.append(
            {
                'name': name,
                'settle_s': settle_s,
                'measured_s': samples[-1].at_s - began.at_s,
                'major_faults_per_s': rates,
                'touches_per_s': touches,
                'samples': [dataclasses.asdict(item) for item in samples],
            }
        )


def _is_steered(done):
    return done['enforced'] and all(
        item['applied'].get('memory') for item in done['instances']
    )


def main():
    """Run, and write what was measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--seconds', type=float, required=True)
    parser.add_argument('--settle', type=float, required=True)
    parser.add_argument('--interval', type=float, required=True)
    parser.add_argument('--metric', required=True)
    for name in ('node-mib', 'light-mib', 'heavy-mib'):
        parser.add_argument(f'--{name}', type=int, required=True)
    for name in ('light-rate', 'heavy-rate'):
        parser.add_argument(f'--{name}', type=int, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as where:
        found = Stage(pathlib.Path(where), options).run()
    options.out.write_text(json.dumps(found))
    return 0


if __name__ == '__main__':
    sys.exit(main())
