# SPDX-License-Identifier: Apache-2.0

"""Options of hosts that move between batch system and cloud:
``[fairness_partition]``.
"""

from oslo_config import cfg
from oslo_config import types

GROUP = cfg.OptGroup(
    'fairness_partition',
    title='Hosts between batch and cloud',
    help="""
Moves of hosts between a batch system and the cloud, according to the demand in
both queues. No host moves unless ``batch`` names a batch system.
""",
)

OPTS = [
    cfg.StrOpt(
        'batch',
        default='',
        advanced=True,
        help="""
Plugin for the batch system whose hosts can also work for the cloud: ``slurm``
(by Slurm's commands), ``slurmrestd``, ``condor`` (HTCondor) or ``lsf``, which
was written from its manual and never tested on a real system. Other packages
can add plugins. Empty: no host moves. Set it if hosts are to move.
All processes of the service must have the same value.
""",
    ),
    cfg.Opt(
        'batch_parameters',
        type=types.Dict(types.Float()),
        default={},
        advanced=True,
        help="""
Parameters of the plugin, such as ``timeout_s:60``, by name. A missing
parameter has its default. All plugins have ``timeout_s`` (seconds in which a
command must answer, default 30); ``condor`` has ``retirement_s`` (seconds that
each job of a host may still run after the drain begins, default 86400). Change
it if the batch system is slow.
""",
    ),
    cfg.StrOpt(
        'hosts_file',
        default='/etc/nova-fairness/partition.yaml',
        advanced=True,
        help="""
YAML file with the hosts that may move::

    hosts:
    - {name: node1, cores: 64}
    - {name: node2, batch: n2, cloud: node2.example.org, cores: 64}
    - {name: node3, cores: 64, fixed: true}
    windows:
    - {begins: '0 20 * * fri', lasts: 60h, hosts: 2, zone: Europe/Rome}
    groups:
    - {account: physics, batch: phys}

``batch`` and ``cloud`` are the names of a host in the batch system and in
Nova, if they differ from ``name``; ``cores`` are the CPUs that each system can
use. ``fixed`` hosts never move. During a window the cloud has the given number
of hosts, regardless of the demand. A group has one pledge for both systems:
the share of its ``account`` in the share tree. ``batch`` is its account in the
batch system, whose share is adjusted by the group's use of both systems. The
file is read again when it changes. If it has an error, the whole new file is
ignored. Set it if the file has another path. All processes of the service must
have the same file.
""",
    ),
    cfg.FloatOpt(
        'patience',
        default=300.0,
        min=0.0,
        advanced=True,
        help="""
Seconds that a job or a request waits for room before hosts move for it. Raise
it if room often becomes free without a move.
""",
    ),
    cfg.FloatOpt(
        'spare_cores',
        default=0.0,
        min=0.0,
        advanced=True,
        help="""
Number of cores that the batch system and the cloud each keep free beyond the
needs of waiting jobs or requests. Raise it if new jobs and requests should
start at once.
""",
    ),
    cfg.FloatOpt(
        'stay',
        default=3600.0,
        min=0.0,
        advanced=True,
        help="""
Seconds that a host stays in the batch system or in the cloud before demand can
move it again. Raise it if hosts move too often.
""",
    ),
    cfg.IntOpt(
        'most_moving',
        default=2,
        min=0,
        advanced=True,
        help="""
Largest number of hosts that move at the same time. Raise it if many hosts
should move quickly; 0: only operators move hosts.
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
Seconds for which a host that is disabled in Nova must stay empty before it
moves to the batch system; at least 1. Just before it was disabled, Nova may
have chosen it for a server that no list shows yet. Raise it if messages of
Nova take longer.
""",
    ),
    cfg.FloatOpt(
        'time_to_live',
        default=86400.0,
        min=1.0,
        advanced=True,
        help="""
Seconds within which a host that is to move must become empty; at least 1, by
default 86400 (a day). If a job or server still runs on it then, the move is
aborted and the host stays in its system, unless ``end_actions`` ends the
servers. Raise it to the longest time limit of jobs if long jobs often prevent
moves.
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
Actions on a server that still runs on its host after ``time_to_live``:
``shelve``, ``delete``. The service performs them one after the other until the
room of the server is free. The owner gets a notice ``end_notice`` seconds
before (``[fairness_cluster]``). Empty: no action; the host then stays in the
cloud. Jobs are never ended. Set it if hosts must move to the batch system even
if work is lost.
""",
    ),
    cfg.StrOpt(
        'features_path',
        default='',
        advanced=True,
        help="""
Directory in which jobs read the machine features of their host (HEPiX
``MACHINEFEATURES``). Each host has a directory there, named as in the batch
system. It contains the file ``total_cpu`` and, while the host is about to
move, ``shutdowntime`` (seconds of the epoch). The directory must exist, and be
shared with the hosts or served by HTTP. Empty: no features are written. Set it
if jobs read ``MACHINEFEATURES``. All processes of the service must have the
same value.
""",
    ),
    cfg.BoolOpt(
        'live_migrate',
        default=False,
        advanced=True,
        help="""
Whether live migration moves servers away from a host that is to move to the
batch system; Nova chooses their new hosts. If not, the move waits until the
servers end. Set it if live migration works in this cloud.
""",
    ),
    cfg.IntOpt(
        'contended',
        default=-1,
        min=-1,
        advanced=True,
        help="""
Number of hosts that the cloud gets while both the cloud and the batch system
need more hosts; -1: no host moves then. Set it to the number of hosts that the
cloud has by agreement.
""",
    ),
]
