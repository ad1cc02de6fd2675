# SPDX-License-Identifier: Apache-2.0

"""Hosts that strategies of packing need, over several seeds.

    python -m benchmarks.planners.packing_seeds --out FILE

packs what ``nova-fairness-sim cluster pack strategies`` packs with each of ten
seeds, and compares strategies seed by seed, in the form of ``spread.json``.
"""

from benchmarks.queue import recorded
from fairness_lab.measures import paired
from fairness_lab.queue_sim import experiments
from fairness_lab.queue_sim import spread

REFERENCE = 'fullest, moved'
SEEDS = range(1, 11)


def compared(tables):
    """Compare strategies.

    :param tables: that of each seed, by seed.
    """
    hosts = {}
    for table in tables.values():
        for row in table:
            hosts.setdefault(row['strategy'], []).append(row['hosts'])
    first = hosts[REFERENCE]
    runs = [
        {
            'name': name,
            'measures': {
                'hosts': spread.measured(
                    values, None if name == REFERENCE else first, 'less'
                )
            },
        }
        for name, values in hosts.items()
    ]
    return {
        'confidence': paired.CONFIDENCE,
        'better': {'hosts': 'less'},
        'clouds': [
            {
                'scenario': 'strategies',
                'seeds': [*tables],
                'reference': REFERENCE,
                'runs': runs,
            }
        ],
    }


def main():
    """Pack with each seed, and write what was found."""
    options = recorded.parser(__doc__).parse_args()
    tables = {seed: experiments.strategies(seed) for seed in SEEDS}
    recorded.write(options.out, compared(tables))


if __name__ == '__main__':
    main()
