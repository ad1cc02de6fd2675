# SPDX-License-Identifier: Apache-2.0

"""Options of the agent's round: ``[fairness]``."""

import socket

from oslo_config import cfg
from oslo_config import types

from nova_fairness.model import defaults

GROUP = cfg.OptGroup(
    'fairness',
    title='Fair sharing of a node',
    help='What the agent measures, how it decides and whether it acts.',
)

_EXEMPT = """
The VMs keep the value they were found with, and their use still counts for
their owner's heaviness. Identifiers are matched whole; the hexadecimal ids
of Keystone and the UUIDs of instances are expected. Can be changed while the
agent runs (SIGHUP): a VM that becomes exempt gets back what it had.
"""

CONTROLS = ('cpu', 'memory', 'blkio', 'network')


def _by_control(
    name: str, number: types.Float, help_text: str, **default: float
) -> cfg.Opt:
    """Make an option with one number for each control that it names."""
    return cfg.Opt(
        name,
        type=types.Dict(number, key_value_separator=':'),
        default=default,
        help=help_text,
    )


OPTS = [
    cfg.HostAddressOpt(
        'host',
        default=socket.gethostname(),
        sample_default='<hostname>',
        help="""
Name under which this node is known to its peers. Change it only if the
host name differs from the one that the compute service uses.
""",
    ),
    cfg.StrOpt(
        'metric',
        default=defaults.METRIC,
        mutable=True,
        help="""
Name of the metric that says how heavy a VM and its user are. Installed are
``DominantShareMetric`` (the largest part of any resource),
``AssetFairnessMetric`` (the sum of all parts), ``GreedinessMetric`` (a charge
for what VMs are endowed with, used or not; for the policy ``thesis``),
``UniformMetric`` (everybody is equal) and whatever other packages bring. Of a
metric and a policy with which users may be worse off than without any agent,
log and status say so. Can be changed while the agent runs (SIGHUP), which also
sets a quarantined plugin free again.
""",
    ),
    cfg.StrOpt(
        'policy',
        default=defaults.POLICY,
        mutable=True,
        help="""
Name of the policy that turns heaviness into weights: ``feedback`` moves the
weights until the heaviness of those who compete is equal; ``foresight`` does
the same on a node alone and works out where feedback would end, and goes
there at once, where users have VMs on several nodes; ``thesis`` is the fixed
map and the narrow ranges of the original, for ``GreedinessMetric``. Can be
changed while the agent runs (SIGHUP).
""",
    ),
    cfg.FloatOpt(
        'interval',
        default=10.0,
        min=0.2,
        max=3600.0,
        help="""
Seconds from the start of one round to the start of the next. Shorter reacts
faster and costs proportionally more CPU; 1 is practical. A round that runs
late never piles up: the rounds it missed are left out.
""",
    ),
    cfg.BoolOpt(
        'enforce',
        default=True,
        mutable=True,
        help="""
Whether to write to the kernel. With ``false`` the agent measures, exchanges
and reports what it would do, and every control gets back the value it was
found with. Start with ``false`` on a new node. Can be changed while the
agent runs (SIGHUP).
""",
    ),
    cfg.StrOpt(
        'entity',
        default='user',
        choices=[
            ('user', 'the user who started the VM'),
            ('project', 'the project that owns the VM'),
        ],
        help='Who is compared with whom. All nodes must agree.',
    ),
    cfg.FloatOpt(
        'decay_factor',
        default=0.5,
        min=0.01,
        max=1.0,
        help="""
Part of the newest interval in the smoothed usage; the rest is the past. 1
forgets at once; smaller values calm bursts and react later. No unit.
""",
    ),
    cfg.ListOpt(
        'controls',
        item_type=types.String(choices=CONTROLS),
        default=list(CONTROLS),
        mutable=True,
        help="""
What to steer: ``cpu`` (shares), ``memory`` (protection), ``blkio`` (weight of
the disks) and ``network`` (class of traffic control). Those that this node
cannot steer are named once in the log and always in the status, and the others
work without them. One that is left out here is never written; leaving it out
while the agent runs (SIGHUP) gives it back the values it was found with.
""",
    ),
    cfg.FloatOpt(
        'max_weight_ratio',
        default=20.0,
        min=1.0,
        max=1000.0,
        help="""
Largest weight on a node divided by the smallest. It bounds how much a heavy
VM can be slowed down in favour of a light one. A VM's own management thread
slows down with it: above about 20 calls of the compute service for a heavy
VM take seconds. Not used by the policy ``thesis``. No unit.
""",
    ),
    _by_control(
        'max_weight_ratios',
        types.Float(min=1.0, max=1000.0),
        """
``max_weight_ratio`` of single controls, such as ``network:50``. Only the CPU
slows the management thread down, so the others may have more. No unit.
""",
    ),
    cfg.FloatOpt(
        'weight_tolerance',
        default=0.01,
        min=0.0,
        max=0.5,
        help="""
A change smaller than this part of the present value is not written. Larger
values save writes and make the sharing coarser. No unit.
""",
    ),
    _by_control(
        'weight_tolerances',
        types.Float(min=0.0, max=0.5),
        """
``weight_tolerance`` of single controls, such as ``network:0.02``. What a VM
holds of memory changes all the time, hence more for it. No unit.
""",
        memory=0.05,
    ),
    cfg.FloatOpt(
        'largest_step',
        default=4.0,
        min=1.01,
        max=1000.0,
        help="""
Largest factor by which a weight changes in one round, up or down. Smaller
values protect against a metric gone wrong and make the agent slower to
react. Not used by the policy ``thesis``. No unit.
""",
    ),
    _by_control(
        'largest_steps',
        types.Float(min=1.01, max=1000.0),
        """
``largest_step`` of single controls, such as ``memory:1.5``. No unit.
""",
    ),
    cfg.FloatOpt(
        'metric_deadline',
        default=1.0,
        min=0.01,
        max=60.0,
        help="""
Seconds that a metric or policy may take. One that takes longer is put into
quarantine: the weights stay as they are, and the agent says so, until it is
set again. Time for which a busy host gave it no CPU does not count, up to ten
times as long. Raise it for a plugin that needs more on nodes with many VMs.
""",
    ),
    cfg.StrOpt(
        'connection_uri',
        default='qemu:///system',
        help='libvirt connection of this node.',
    ),
    cfg.FloatOpt(
        'reconcile_interval',
        default=60.0,
        min=1.0,
        max=3600.0,
        help="""
Seconds between complete comparisons with libvirt's list of VMs. Events
announce changes at once; this bounds how long a lost event goes unnoticed.
""",
    ),
    cfg.StrOpt(
        'state_path',
        default='/var/lib/nova-fairness',
        help="""
Directory of what must survive a restart: the values that the controls were
found with and what the policy remembers. It must be writable, on a disk that
survives a reboot of the agent, and belong to one agent only.
""",
    ),
    cfg.StrOpt(
        'record_path',
        default='',
        help="""
File to which each round is appended as one JSON object: counters, usage,
heaviness, weights. Empty: no record. For evaluation; it grows without bound,
about 1 kB per VM and round.
""",
    ),
    cfg.ListOpt(
        'exempt_users',
        default=[],
        mutable=True,
        help='Ids of users whose VMs are never steered.' + _EXEMPT,
    ),
    cfg.ListOpt(
        'exempt_projects',
        default=[],
        mutable=True,
        help='Ids of projects whose VMs are never steered.' + _EXEMPT,
    ),
    cfg.ListOpt(
        'exempt_instances',
        default=[],
        mutable=True,
        help='UUIDs of VMs that are never steered.' + _EXEMPT,
    ),
    cfg.StrOpt(
        'owners_file',
        default='',
        help="""
JSON file that names the owners of VMs without Nova's metadata: an object
with a VM's UUID or libvirt name as key and ``{"user": ..., "project": ...}``
as value. Empty: such VMs together have the owner ``unowned``.
""",
    ),
    cfg.Opt(
        'quota_weights',
        type=types.Dict(types.Float(min=0.001, max=1e6)),
        default={},
        mutable=True,
        help="""
Who is entitled to how much: id of a user (or project) and weight, such as
``6a1f:2,77b0:0.5``. Those not named have weight 1. The quota of a user is
the weight's part of the sum of the weights of all present users.
""",
    ),
    cfg.StrOpt(
        'preferences_file',
        default='',
        help="""
JSON file that says how an owner's part of a node is divided among the owner's
own VMs: an object with a VM's UUID as key and a number from 0.01 to 100 as
value, such as ``{"53a7...": 3}``. VMs not named have 1. It moves nothing
between users. Read again when it changes. What is set by
``nova-fairness-ctl`` comes before it. Empty: no file.
""",
    ),
]
