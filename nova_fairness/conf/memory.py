# SPDX-License-Identifier: Apache-2.0

"""Options of the memory control: ``[fairness_memory]``."""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'fairness_memory',
    title='Memory',
    help='Memory of each VM that is protected when its node is short of'
    ' memory.',
)

OPTS = [
    cfg.FloatOpt(
        'floor_part',
        default=0.25,
        min=0.0,
        max=1.0,
        advanced=True,
        help="""
Part of the flavor's memory that is always protected, even for the heaviest
user, from 0 to 1. No unit. At least 128 MiB are protected. If a VM uses less,
all of its memory is protected. Raise it to guarantee VMs more of their flavor,
or if VMs of heavy users stop responding while the node is short of memory.
With 1, only memory beyond the flavors is divided by weight.
""",
    ),
    cfg.FloatOpt(
        'unspared_part',
        default=0.1,
        min=0.0,
        max=0.9,
        advanced=True,
        help="""
Part of the node's memory that is not protected for any VM, from 0 to 0.9. No
unit. VMs may use it, but when memory is short the kernel reclaims it first.
Without this part the kernel would reclaim memory of the host's own programs.
Raise it if these programs are swapped out. In contrast, VMs cannot use
``[fairness_node] reserved_memory`` at all.
""",
    ),
]
