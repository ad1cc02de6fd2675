# SPDX-License-Identifier: Apache-2.0

"""Options of the control of disks: ``[fairness_disk]``."""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'fairness_disk',
    title='Disks',
    help='How disks are shared whose devices keep no weights.',
)

OPTS = [
    cfg.BoolOpt(
        'throttle',
        default=False,
        help="""
Whether VMs on devices whose scheduler keeps no weights (none, mq-deadline,
kyber) are throttled while several wait for the same device: each to its part,
by weight, of what the device just delivered, reading and writing apart. The
limits are lifted in the first round without contention, and at the end. They
cost throughput: a VM below its limit leaves what others may not take before
the next round. Prefer a scheduler that keeps weights (bfq) or the kernel's
cost model (``io.cost.qos``); use this where neither can be had.
""",
    ),
    cfg.FloatOpt(
        'throttle_headroom',
        default=0.05,
        min=0.0,
        max=1.0,
        help="""
Part by which the limits together exceed what the device just delivered, 0 to
1. With 0 a device that was slow for one interval stays slow; more lets limits
follow a device that became faster.
""",
    ),
]
