# SPDX-License-Identifier: Apache-2.0


"""Metrics x policies x references over the standard set, in the simulator.

    python -m benchmarks.policies.policies WHAT --out benchmarks/results/sim

``table`` runs every scenario with every metric and policy and with the
references of the field, and writes a file for each in ``table/``; with
``--only`` some of them, such as on another core. ``summary`` writes of these
files the tables and the picture. ``apart`` says how far fair divisions of
each resource are from the dominant ideal. ``graphs`` grows chains, stars and
random graphs, and writes how many rounds each policy needs; ``small`` draws
many of up to five nodes. ``sweep`` tries the numbers of the default policy
and of feedback; with ``--only`` of one of them. ``robust`` makes reports late
and lost, nodes slow and one node deaf. ``bursts`` lets demand come and go,
and tries a shorter memory of usage; ``late`` puts weights of true wants beside
it. ``kernels`` has kernels divide otherwise than weights ask. ``cost`` takes
the time of foresight. ``defaults`` runs pairs of metrics and policies, and
says with which users are worse off than without agents.
"""

import argparse
import pathlib

from benchmarks.policies import apart
from benchmarks.policies import bursts
from benchmarks.policies import cost
from benchmarks.policies import defaults
from benchmarks.policies import graphs
from benchmarks.policies import kernels
from benchmarks.policies import late
from benchmarks.policies import robust
from benchmarks.policies import sweep
from benchmarks.policies import table

KINDS = {
    'table': lambda options: table.table(
        options.out, options.only, more=options.more
    ),
    'summary': lambda options: table.write_summaries(options.out),
    'apart': lambda options: apart.apart(options.out),
    'graphs': lambda options: graphs.graphs(
        options.out, options.sizes, more=options.more
    ),
    'small': lambda options: graphs.draw_small_graphs(options.out),
    'sweep': lambda options: sweep.run_sweeps(options.out, options.only),
    'robust': lambda options: robust.robust(options.out),
    'bursts': lambda options: bursts.bursts(options.out),
    'late': lambda options: late.late(
        options.out, options.only, more=options.more
    ),
    'kernels': lambda options: kernels.kernels(options.out),
    'cost': lambda options: cost.cost(options.out),
    'defaults': lambda options: defaults.defaults(options.out, options.only),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('what', choices=list(KINDS))
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument(
        '--only', default='', help='run only names with this text'
    )
    parser.add_argument('--sizes', type=int, nargs='+', default=graphs.SIZES)
    parser.add_argument(
        '--more',
        action='store_true',
        help='keep earlier results; run only the missing ones',
    )
    options = parser.parse_args()
    KINDS[options.what](options)


if __name__ == '__main__':
    main()
