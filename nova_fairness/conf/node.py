# SPDX-License-Identifier: Apache-2.0

"""Options of what a node has: ``[fairness_node]``."""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'fairness_node',
    title='Capacity of a node',
    help='What VMs can use of this node. What is not set is discovered.',
)

_BANDWIDTH = """
Bytes per second, as seen by VMs. Not set: a conservative value for the kind
of device, which the agent names in its log; nothing is ever benchmarked. Set
it when the device is known to be faster or slower: too small a value makes
those who use it look heavier than they are.
"""

_OVERCOMMIT = """
Virtual {what} per physical {what} for which the cloud is meant. The supply
counts this many times when heaviness is normalised, so a higher ratio makes
the resource weigh less. Use the allocation ratio of the placement service if
heaviness shall compare with it; 1 treats all resources alike. No unit.
"""

OPTS = [
    cfg.StrOpt(
        'cpus',
        default='',
        help="""
Numbers of the CPUs that VMs may use, such as ``0-3,6``. Empty: those that
the control group of the VMs allows.
""",
    ),
    cfg.FloatOpt(
        'cpu_speed_factor',
        min=0.001,
        help="""
Worth of one second of one CPU of this node, in any unit that all nodes of
the cloud share (a benchmark's score, for example). Not set: the mean BogoMIPS
of the CPUs, which compares different generations of CPUs badly.
""",
    ),
    cfg.FloatOpt(
        'disk_read_bandwidth', min=1.0, help='Reading from disk.' + _BANDWIDTH
    ),
    cfg.FloatOpt(
        'disk_write_bandwidth', min=1.0, help='Writing to disk.' + _BANDWIDTH
    ),
    cfg.FloatOpt(
        'network_bandwidth',
        min=1.0,
        help='Network, each direction.' + _BANDWIDTH,
    ),
    cfg.StrOpt(
        'network_interface',
        default='',
        help="""
Interface whose link speed is the network bandwidth. Empty: the one of the
default route. Not used when ``network_bandwidth`` is set.
""",
    ),
    cfg.IntOpt(
        'reserved_memory',
        default=0,
        min=0,
        help='Bytes of memory that VMs cannot use, because the host does.',
    ),
    cfg.FloatOpt(
        'cpu_overcommit',
        default=1.0,
        min=0.01,
        help=_OVERCOMMIT.format(what='CPUs'),
    ),
    cfg.FloatOpt(
        'disk_overcommit',
        default=1.0,
        min=0.01,
        help=_OVERCOMMIT.format(what='disk bandwidth'),
    ),
    cfg.FloatOpt(
        'memory_overcommit',
        default=1.0,
        min=0.01,
        help=_OVERCOMMIT.format(what='memory'),
    ),
]
