# SPDX-License-Identifier: Apache-2.0

"""Options of hosts between batch and cloud: ``[fairness_partition]``."""

from oslo_config import cfg
from oslo_config import types

GROUP = cfg.OptGroup(
    'fairness_partition',
    title='Hosts between batch and cloud',
    help="""
How the cluster service moves hosts between a batch system and the cloud, as
both queues demand. Nothing moves unless ``batch`` names a batch system.
""",
)

OPTS = [
    cfg.StrOpt(
        'batch',
        default='',
        advanced=True,
        help="""
Batch system whose hosts also work for the cloud, the name of a plugin:
``slurm`` (by its commands) or ``slurmrestd``; or ``condor`` (HTCondor) or
``lsf``, which were written from their manuals and never run on a real one.
Others can be installed. Empty: no host moves. Set it if hosts are to move. All
processes of the service must have the same.
""",
    ),
    cfg.Opt(
        'batch_parameters',
        type=types.Dict(types.Float()),
        default={},
        advanced=True,
        help="""
Numbers of the batch system, such as ``timeout_s:60``, by name; those not named
have their defaults. All have ``timeout_s`` (seconds in which a command must
answer, default 30); ``condor`` has ``retirement_s`` (seconds that each job of
a host may still run once the host is drained, default 86400). Change it if the
batch system is slow.
""",
    ),
    cfg.StrOpt(
        'hosts_file',
        default='/etc/nova-fairness/partition.yaml',
        advanced=True,
        help="""
YAML file that names the hosts which may move::

    hosts:
    - {name: node1, cores: 64}
    - {name: node2, batch: n2, cloud: node2.example.org, cores: 64}
    - {name: node3, cores: 64, fixed: true}
    windows:
    - {begins: '0 20 * * fri', lasts: 60h, hosts: 2, zone: Europe/Rome}
    groups:
    - {account: physics, batch: phys}

``batch`` and ``cloud`` are its names in the batch system and in Nova, if they
differ from ``name``; ``cores`` are CPUs that either side can give away.
``fixed`` hosts stay where they are. Within a window the cloud has that number
of hosts, whatever the demand. ``groups`` have one pledge for both sides, the
share of their ``account`` in the share tree; ``batch`` is their account in the
batch system, whose share is adjusted by their use of both. The file is read
again when it changes; if anything in it is wrong, nothing of it is taken over.
Set it if it lies elsewhere. All processes of the service must have the same.
""",
    ),
    cfg.FloatOpt(
        'patience',
        default=300.0,
        min=0.0,
        advanced=True,
        help="""
Seconds that a job or a request waits for room before hosts move for it. Raise
it if room is often found without that.
""",
    ),
    cfg.FloatOpt(
        'spare_cores',
        default=0.0,
        min=0.0,
        advanced=True,
        help="""
Number of cores that a side keeps free beyond what waits there. Raise it if
what starts there is to start at once.
""",
    ),
    cfg.FloatOpt(
        'stay',
        default=3600.0,
        min=0.0,
        advanced=True,
        help="""
Seconds that a host stays where it is at least before demand moves it again.
Raise it if hosts move too often.
""",
    ),
    cfg.IntOpt(
        'most_moving',
        default=2,
        min=0,
        advanced=True,
        help="""
Largest number of hosts that are on their way at once. Raise it if many hosts
should follow quickly; 0: none begin to move, except by hand.
""",
    ),
    cfg.IntOpt(
        'most_per_day',
        default=3,
        min=0,
        advanced=True,
        help="""
Largest number of moves of one host in 24 hours. Lower it if hosts move too
often.
""",
    ),
    cfg.FloatOpt(
        'settle',
        default=30.0,
        min=1.0,
        advanced=True,
        help="""
Seconds for which a host that Nova has closed must stay empty before it goes to
the batch system; at least 1. Nova may have chosen it just before for a server
that is in no list yet. Raise it if messages of Nova take longer than that.
""",
    ),
    cfg.FloatOpt(
        'time_to_live',
        default=86400.0,
        min=1.0,
        advanced=True,
        help="""
Seconds after which what runs on a host that is left must be gone; at least 1,
by default 86400 (a day). A host on which something is left then stays where it
was, unless ``end_actions`` says otherwise. Raise it to the longest time limit
of jobs if hosts often stay for that.
""",
    ),
    cfg.ListOpt(
        'end_actions',
        default=[],
        advanced=True,
        item_type=types.String(
            choices=['shelve', 'delete'], ignore_case=False
        ),
        help="""
Actions on a server that is still on its host after ``time_to_live``, one after
the other until its room is free: ``shelve``, ``delete``. Its owner is told
``end_notice`` seconds before (``[fairness_cluster]``). Empty: nothing; then
its host stays in the cloud. Jobs are never ended. Set it if hosts must go to
the batch system, even if work is lost.
""",
    ),
    cfg.StrOpt(
        'features_path',
        default='',
        advanced=True,
        help="""
Directory in which jobs read the machine features of their host: for each
host, in a directory of its name in the batch system, ``total_cpu`` and, while
it is being left, ``shutdowntime`` (seconds of the epoch). It must be there,
and be shared with the hosts or served by HTTP. Empty: none are written. Set it
if jobs look at ``MACHINEFEATURES``. All processes of the service must have the
same.
""",
    ),
    cfg.BoolOpt(
        'live_migrate',
        default=False,
        advanced=True,
        help="""
Whether servers of a host that is to go to the batch system are moved to other
hosts while they run; Nova chooses where. Off, they stay until they end. Set it
if live migration works in this cloud.
""",
    ),
    cfg.IntOpt(
        'contended',
        default=-1,
        min=-1,
        advanced=True,
        help="""
Number of hosts that the cloud has while both sides lack some; -1: the border
stays where it is. Set it to what is the cloud's by agreement.
""",
    ),
]
