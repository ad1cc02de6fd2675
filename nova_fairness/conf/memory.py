# SPDX-License-Identifier: Apache-2.0

"""Options of the memory control: ``[fairness_memory]``."""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'fairness_memory',
    title='Memory',
    help='Memory that each VM keeps when its node is short of memory.',
)

OPTS = [
    cfg.FloatOpt(
        'floor_part',
        default=0.25,
        min=0.0,
        max=1.0,
        advanced=True,
        help="""
Part of the flavor's memory that is protected however heavy the user of a VM
is, from 0 to 1. No unit. At least 128 MiB are. A VM that holds less is
protected as a whole. Raise it to promise VMs more of their flavor, or if VMs
of heavy users no longer answer while the node is short of memory; with 1 users
are equal only in what the node has on top.
""",
    ),
    cfg.FloatOpt(
        'unspared_part',
        default=0.1,
        min=0.0,
        max=0.9,
        advanced=True,
        help="""
Part of the node's memory that is protected for no VM, from 0 to 0.9. No unit.
VMs use it as they like, but it is what the kernel takes first when memory is
short. Without it the kernel would take from the host's own programs. Raise it
if these are swapped out. ``[fairness_node] reserved_memory`` is what VMs
cannot use at all.
""",
    ),
]
