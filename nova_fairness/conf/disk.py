# SPDX-License-Identifier: Apache-2.0

"""Options of the control of disks: ``[fairness_disk]``."""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'fairness_disk',
    title='Disks',
    help='Sharing of disks whose scheduler has no weights.',
)

OPTS = [
    cfg.BoolOpt(
        'throttle',
        default=False,
        advanced=True,
        help="""
Whether VMs are throttled on devices whose scheduler has no weights (none,
mq-deadline, kyber). While several VMs wait for one device, each VM is limited
to a part of the rate that the device delivered in the last round. The part
follows from the weight of the VM. Reads and writes have separate limits. The
limits are removed in the first round without waiting VMs, and when the agent
stops. Limits cost throughput: other VMs can use the unused part of a limit
only in the next round. Prefer a scheduler with weights (bfq) or the kernel's
cost model (``io.cost.qos``); set this option if neither is available.
""",
    ),
]
