# SPDX-License-Identifier: Apache-2.0

"""Cost of a month of the simulated queue: 1,000 hosts, 100,000 requests.

The scenario ``month``, in which users ask for 97 % of the cloud. With more
than there is, ever more wait, and each plan goes through all of them. Run
alone on the machine::

    python -m benchmarks.queue.month --out benchmarks/results/queue/month.json
"""

import resource
import time
from typing import Any

from benchmarks.queue import recorded
from fairness_lab.queue_sim import engine
from fairness_lab.queue_sim import reader
from nova_fairness import plugins

ORDER = 'fair_tree'
LOOK_S = 86400.0


def measure() -> dict[str, Any]:
    """Go through a month, and say what it took."""
    cloud = reader.find('month')
    begun_s = time.process_time()
    simulation = engine.Simulation(cloud, plugins.load_order(ORDER))
    waiting = [
        int((simulation.fate == engine.Fate.WAITING).sum())
        for _ in simulation.moments(LOOK_S)
    ]
    return {
        'order': ORDER,
        'cpu_s': round(time.process_time() - begun_s, 1),
        'days': round(cloud.duration_s / 86400.0),
        'hosts': len(cloud.hosts),
        'requests': len(cloud.stream),
        'plans': simulation.plans,
        'most_waiting': max(waiting),
        'peak_memory_mib': round(
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        ),
    }


def main() -> None:
    """Measure, and write what was found."""
    out = recorded.parser(__doc__).parse_args().out
    recorded.write(out, measure())


if __name__ == '__main__':
    main()
