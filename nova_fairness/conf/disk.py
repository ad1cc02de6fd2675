# SPDX-License-Identifier: Apache-2.0

"""Options of the control of disks: ``[fairness_disk]``."""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'fairness_disk',
    title='Disks',
    help='How disks are shared whose scheduler has no weights.',
)

OPTS = [
    cfg.BoolOpt(
        'throttle',
        default=False,
        advanced=True,
        help="""
Whether VMs are throttled on devices whose scheduler has no weights (none,
mq-deadline, kyber). While several VMs wait for one device, each is limited to
its part, by weight, of the rate that the device just delivered; reads and
writes are limited apart. The limits are lifted in the first round without
waiting VMs, and when the agent stops. They cost throughput: no other VM gets
the unused part of a limit before the next round. Prefer a scheduler with
weights (bfq) or the kernel's cost model (``io.cost.qos``); use this where
neither can be had.
""",
    ),
]
