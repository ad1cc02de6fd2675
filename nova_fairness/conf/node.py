# SPDX-License-Identifier: Apache-2.0

"""Options of the capacity of a node: ``[fairness_node]``."""

from oslo_config import cfg

from nova_fairness.conf import fairness

GROUP = cfg.OptGroup(
    'fairness_node',
    title='Capacity of a node',
    help='Resources of this node that VMs can use. Values that are not set '
    'are discovered.',
)

_BANDWIDTH = """
Bytes per second, as seen by VMs. Not set: a conservative value for the kind of
device, which the log reports; the agent never runs a benchmark. Set it if you
know the rate of the device: with too small a value, users of the device seem
heavier than they are.
"""


OPTS = [
    cfg.StrOpt(
        'cpus',
        default='',
        advanced=True,
        help="""
Numbers of the CPUs that VMs may use, such as ``0-3,6``. Empty: the CPUs that
the control group of the VMs allows. Set it if VMs are limited to some CPUs by
other means.
""",
    ),
    cfg.FloatOpt(
        'cpu_speed_factor',
        min=0.001,
        help="""
Speed of one CPU of this node, in a unit that is the same on all nodes of the
cloud, such as the score of a benchmark. CPU seconds are multiplied by it. Not
set: the mean BogoMIPS of the CPUs. Set it on all nodes if their CPUs are of
different generations, because BogoMIPS are not comparable then.
""",
    ),
    cfg.FloatOpt(
        'disk_read_bandwidth',
        min=1.0,
        help='Rate at which all VMs together can read from disk.' + _BANDWIDTH,
    ),
    cfg.FloatOpt(
        'disk_write_bandwidth',
        min=1.0,
        help='Rate at which all VMs together can write to disk.' + _BANDWIDTH,
    ),
    cfg.FloatOpt(
        'network_bandwidth',
        min=1.0,
        help='Rate at which all VMs together can send; they can receive at '
        'the same rate.' + _BANDWIDTH,
    ),
    cfg.IntOpt(
        'reserved_memory',
        default=0,
        min=0,
        help="""
Bytes of memory that VMs cannot use, because the host needs them. Set it to
Nova's ``reserved_host_memory_mb``, times 1048576.
""",
    ),
    fairness.option(
        'overcommit',
        (0.01, 1000.0),
        """
Overcommit ratio: virtual resources that the cloud sells per physical resource.
No unit. A single number holds for all controls; ``1,cpu:16,memory:1.5`` sets
other numbers for ``cpu`` and ``memory``. The supply of a resource is
multiplied by its ratio, so use of a resource with a higher ratio counts less.
Set it to the allocation ratios of Placement if heaviness should reflect them;
with 1 all resources count equally.
""",
        advanced=True,
    ),
]
