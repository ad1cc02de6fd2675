# SPDX-License-Identifier: Apache-2.0

"""How the queue does with a real Nova of many hosts that is far too small.

Brings up the OpenStack of ``tests/fixtures/nova_cloud`` with 30 hosts of
Nova's fake driver and the queue in front of it. Users of three projects ask
for far more servers than there is room for; those that run are deleted again
and again until all have run. Everything shares the machine: MariaDB, RabbitMQ,
Keystone, Placement, Nova, and the hosts. Run as root, alone on the machine::

    python -m benchmarks.queue.many_hosts --out FILE

Exit code 1 if one was lost, was built twice, or if Placement had ever
allocated more than there is.
"""

import sys
import time
from typing import Any

import numpy as np

from benchmarks.queue import recorded
from tests.fixtures.nova_cloud import crowd as crowd_module
from tests.fixtures.nova_cloud import fake_hosts
from tests.fixtures.nova_cloud import fixtures

HOSTS, VCPUS, REQUESTS = 30, 4, 500


def told(seen: crowd_module.CrowdResult, asked: list[str]) -> dict[str, Any]:
    """Figures of what was seen."""
    waits = [
        seen.active[each] - seen.released[each]
        for each in asked
        if each in seen.released
    ]
    median, late = np.percentile(waits, (50, 99))
    spent_s = max(seen.active.values()) - min(seen.released.values())
    return {
        'active': len(seen.active),
        'lost': len({*asked} - seen.builds.keys()),
        'built_twice': sum(each > 1 for each in seen.builds.values()),
        'looks': seen.looks,
        'beyond_capacity': sorted(seen.beyond),
        'release_to_active_s': {
            'seen': len(waits),
            'p50': round(float(median), 2),
            'p99': round(float(late), 2),
        },
        'starts_per_minute': round(len(asked) / spent_s * 60, 1),
        'seconds_between_cycles': round(seen.took_s / seen.cycles, 2),
        'memory_mib': {
            name: round(most) for name, most in seen.memory_mib.items()
        },
    }


def measured() -> dict[str, Any]:
    """Bring up, ask, look, and take down."""
    with fixtures.running(lambda text: print(text, flush=True)) as cloud:
        cloud.put_queue_in()
        with fake_hosts.running(cloud, HOSTS, VCPUS):
            begun_s = time.monotonic()
            crowd = crowd_module.ManyRequests(cloud, REQUESTS)
            asked_s = time.monotonic() - begun_s
            try:
                figures = told(crowd.run(), crowd.asked)
            finally:
                crowd.delete()
    return {
        'hosts': HOSTS,
        'vcpus_of_a_host': VCPUS,
        'requests': REQUESTS,
        'asked_in_s': round(asked_s, 1),
        **figures,
    }


def main() -> int:
    """Measure, and write what was found."""
    out = recorded.parser(__doc__).parse_args().out
    found = measured()
    recorded.write(out, found)
    names = ('lost', 'built_twice', 'beyond_capacity')
    return int(any(found[name] for name in names))


if __name__ == '__main__':
    sys.exit(main())
