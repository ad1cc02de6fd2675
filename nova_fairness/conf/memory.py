# SPDX-License-Identifier: Apache-2.0

"""Options of the memory control: ``[fairness_memory]``."""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'fairness_memory',
    title='Memory',
    help='What is never taken from a VM when a node is short of memory.',
)

OPTS = [
    cfg.IntOpt(
        'minimum',
        default=128 * 1024 * 1024,
        min=0,
        help="""
Bytes of every VM that are spared however heavy its user is, 0 or more. A VM
that holds less is spared all of it. Raise it if guests of heavy users become
so slow under memory pressure that they no longer answer.
""",
    ),
    cfg.FloatOpt(
        'floor_part',
        default=0.25,
        min=0.0,
        max=1.0,
        help="""
Part of the flavor's memory that is spared likewise, 0 to 1; the larger of
this and ``minimum`` counts. With 1 every VM is spared all that its flavor
promises, and users are equal only in what the node has on top.
""",
    ),
    cfg.FloatOpt(
        'headroom',
        default=0.125,
        min=0.0,
        max=1.0,
        help="""
Part of what a VM holds that is spared on top, 0 to 1, so that it can grow
until the next round. Raise it with long intervals.
""",
    ),
    cfg.FloatOpt(
        'unspared_part',
        default=0.1,
        min=0.0,
        max=0.9,
        help="""
Part of the node's memory, 0 to 0.9, that is promised to no VM. VMs use it as
they like, but when memory is short it is what the kernel takes from first:
without it the host's own programs would be. ``[fairness_node]
reserved_memory`` is what VMs cannot use at all.
""",
    ),
]
