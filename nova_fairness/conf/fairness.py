# SPDX-License-Identifier: Apache-2.0

"""Options of the agent's round: ``[fairness]``."""

from collections.abc import Mapping
import socket
from typing import Any

from oslo_config import cfg
from oslo_config import types

from nova_fairness.model import defaults
from nova_fairness.model import resources

GROUP = cfg.OptGroup(
    'fairness',
    title='Fair sharing of a node',
    help='Measurements, decisions and actions of the agent.',
)


CONTROLS = tuple(control.value for control in resources.ResourceControl)


class ByControl(types.ConfigType):
    """A number for all controls, and others for some: ``20,network:50``.

    A value is a mapping; ``None`` stands for all controls that are not named.
    """

    def __init__(self, number: types.Float) -> None:
        super().__init__(type_name='number, or control:number, ...')
        self._number = number

    def __call__(self, value: str) -> Mapping[str | None, float]:
        """Numbers by control that a text names.

        :raises ValueError: if it names what is not a control, or no number.
        """
        found: dict[str | None, Any] = {}
        for part in filter(None, map(str.strip, value.split(','))):
            control, colon, number = map(str.strip, part.rpartition(':'))
            if not number or (colon and control not in CONTROLS):
                msg = (
                    f'{part!r}: expected a number, such as 20, or one of '
                    f'{", ".join(CONTROLS)} with a number, such as network:50'
                )
                raise ValueError(msg)
            found[control or None] = self._number(number)
        return found

    def __repr__(self) -> str:
        return f'ByControl({self._number!r})'

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByControl) and self._number == other._number

    __hash__ = None  # type: ignore[assignment]

    def _formatter(self, value: str) -> str:
        return str(value)


BY_CONTROL: Mapping[str, Mapping[str | None, float]] = {
    'max_weight_ratio': {None: defaults.MAX_WEIGHT_RATIO},
    'largest_step': {None: 4.0},
    'overcommit': {None: 1.0},
}
"""Defaults of the options that have a number for each control."""


def by_control(
    name: str, said: Mapping[str | None, float] | None
) -> dict[str | None, float]:
    """Number of all controls, by ``None``, and the others of single ones.

    :param name: one of :data:`BY_CONTROL`.
    :param said: what is configured.
    """
    default = BY_CONTROL[name]
    return {None: default[None], **(default if said is None else said)}


def option(
    name: str,
    bounds: tuple[float, float],
    help_text: str,
    advanced: bool = False,
) -> cfg.Opt:
    """An option of :class:`ByControl`, whose default is ``None``."""
    least, most = bounds
    return cfg.Opt(
        name,
        type=ByControl(types.Float(min=least, max=most)),
        sample_default=','.join(
            f'{control}:{number:g}' if control else f'{number:g}'
            for control, number in BY_CONTROL[name].items()
        ),
        advanced=advanced,
        help=f'{help_text}From {least:g} to {most:g}.\n',
    )


OPTS = [
    cfg.HostAddressOpt(
        'host',
        default=socket.gethostname(),
        sample_default='<hostname>',
        advanced=True,
        help="""
Name of this node among its peers and in Nova. Set it only if nova-compute
uses another name than the host name.
""",
    ),
    cfg.StrOpt(
        'metric',
        default=defaults.METRIC,
        mutable=True,
        help="""
Metric that says how heavy a VM and its user are. This package has
``DominantShareMetric`` (the largest part of any resource),
``AssetFairnessMetric`` (the sum of all parts), ``GreedinessMetric`` (charges
for what VMs are endowed with, used or not; for the policy ``thesis``),
``SpendingRate`` (each VM by what its owner spends; for the policy
``proportional``) and ``UniformMetric`` (everybody is equal). Other packages
may add more. Change it if your cloud has another idea of fair. Log and status
warn of a metric and policy that together can leave users worse off than no
agent. Can be changed while the agent runs (SIGHUP), which also ends a plugin's
quarantine.
""",
    ),
    cfg.StrOpt(
        'policy',
        default=defaults.POLICY,
        mutable=True,
        help="""
Policy that turns heaviness into weights. ``foresight`` works out the weights
that make all who compete equally heavy on all nodes, and goes there at once.
``feedback`` moves there step by step, without asking what VMs want on other
nodes. ``thesis`` is the fixed map of the original, for ``GreedinessMetric``.
``proportional`` gives the weights that ``SpendingRate`` says, at once.
Change it to compare policies. Can be changed while the agent runs (SIGHUP).
""",
    ),
    cfg.FloatOpt(
        'interval',
        default=10.0,
        min=0.2,
        max=3600.0,
        help="""
Seconds from the start of one round to the start of the next. A shorter
interval reacts faster and costs proportionally more CPU; 1 is practical. A
round that runs late leaves out those that it missed. Lower it if VMs are busy
for seconds only.
""",
    ),
    cfg.BoolOpt(
        'enforce',
        default=True,
        mutable=True,
        help="""
Whether the agent changes the weights of VMs. With ``false`` it measures,
exchanges and reports what it would do, and every control gets back the value
that it was found with. Use ``false`` on a new node first. Can be changed while
the agent runs (SIGHUP).
""",
    ),
    cfg.StrOpt(
        'entity',
        default='user',
        choices=[
            ('user', 'the user who started the VM'),
            ('project', 'the project that owns the VM'),
        ],
        help="""
Owners that are compared: users or projects. Use ``project`` if a project's
users work together and quotas are set by project. All nodes must have the same
value.
""",
    ),
    cfg.FloatOpt(
        'decay_factor',
        default=0.5,
        min=0.01,
        max=1.0,
        advanced=True,
        help="""
Part of the newest interval in the smoothed usage, from 0.01 to 1; the rest is
the past. No unit. Lower it to react less to short bursts; 1 looks at the
newest interval only.
""",
    ),
    cfg.ListOpt(
        'controls',
        item_type=types.String(choices=CONTROLS),
        default=list(CONTROLS),
        mutable=True,
        help="""
Controls that the agent steers: ``cpu`` (shares), ``memory`` (protection),
``blkio`` (weight of the disks) and ``network`` (class of traffic control).
Leave one out if another program sets it. Those that this node cannot steer are
named in the log and the status, and the others work without them. Can be
changed while the agent runs (SIGHUP); a control that is left out gets back the
values that it was found with.
""",
    ),
    option(
        'max_weight_ratio',
        (1.0, 1000.0),
        """
Largest weight on a node divided by the smallest. No unit. It bounds how far a
heavy VM is slowed down in favour of a light one. A number holds for all
controls; ``20,network:50`` has another for one of them. Raise it to let light
VMs go faster, but not that of ``cpu`` above 20: the VM's own management
thread slows down, and calls of Nova for a heavy VM take seconds. The policy
``thesis`` does not use it.
""",
    ),
    option(
        'largest_step',
        (1.01, 1000.0),
        """
Largest factor by which a weight grows or shrinks in one round. No unit. A
number holds for all controls; ``4,memory:1.5`` has another for one of them.
Lower it to limit what a faulty metric can do; the agent then reacts slower.
The policy ``thesis`` does not use it.
""",
        advanced=True,
    ),
    cfg.FloatOpt(
        'metric_deadline',
        default=defaults.METRIC_DEADLINE_S,
        min=0.01,
        max=60.0,
        advanced=True,
        help="""
Seconds that a metric or a policy may take in a round. One that takes longer is
put into quarantine: the weights stay as they are, and log and status say so.
It is tried again after a minute, then ever more seldom, up to an hour; setting
it again tries it at once. Time in which a busy host gives the plugin no CPU
does not count, up to ten times the deadline. Raise it for a slow plugin on a
node with many VMs.
""",
    ),
    cfg.StrOpt(
        'connection_uri',
        default='qemu:///system',
        advanced=True,
        help="""
URI of the libvirt connection of this node. Change it if nova-compute uses
another one.
""",
    ),
    cfg.FloatOpt(
        'reconcile_interval',
        default=60.0,
        min=1.0,
        max=3600.0,
        advanced=True,
        help="""
Seconds between two complete comparisons with libvirt's list of VMs. Events
tell of changes at once; this bounds how long a lost event goes unnoticed.
Lower it if VMs are seen late.
""",
    ),
    cfg.StrOpt(
        'state_path',
        default='/var/lib/nova-fairness',
        advanced=True,
        help="""
Directory of what must survive a restart: the values that controls were found
with, and what the policy remembers. It must be writable, survive a reboot and
belong to one agent only. Change it if ``/var/lib`` is no such place.
""",
    ),
    cfg.StrOpt(
        'record_path',
        default='',
        advanced=True,
        help="""
File to which each round is appended as one JSON object: counters, usage,
heaviness, weights. Empty: no record. It grows without bound, about 1 kB per VM
and round. Set it for evaluations only.
""",
    ),
    cfg.ListOpt(
        'exempt',
        default=[],
        mutable=True,
        help="""
IDs of users, projects and servers whose VMs are never steered. The VMs keep
the values that they were found with. Their use still counts for their owner's
heaviness. Use it for VMs that must never be slowed down. Identifiers are
matched whole: the IDs of Keystone and the UUIDs of servers. Can be changed
while the agent runs (SIGHUP); a VM that becomes exempt gets back the values
that it was found with.
""",
    ),
    cfg.StrOpt(
        'owners_file',
        default='',
        advanced=True,
        help="""
JSON file that names the owners of VMs without Nova's metadata: an object
with a VM's UUID or libvirt name as key and ``{"user": ..., "project": ...}``
as value. Use it for VMs that Nova did not start. Empty: such VMs together have
the owner ``unowned``.
""",
    ),
    cfg.Opt(
        'quota_weights',
        type=types.Dict(types.Float(min=0.001, max=1e6)),
        default={},
        mutable=True,
        help="""
Users with a larger or smaller quota than others: the id of a user (or of a
project, as ``entity`` says) and a weight from 0.001 to 1e6, such as
``6a1f:2,77b0:0.5``. No unit. Others have weight 1. A user's quota is their
weight divided by the weights of all users who are present. Set it if users pay
for different parts. Can be changed while the agent runs (SIGHUP).
""",
    ),
    cfg.StrOpt(
        'quota_source',
        default='',
        choices=[
            ('', 'all are entitled to the same'),
            ('shares', 'shares of the queue'),
            ('history', 'these, and what was used before, too'),
            ('instances', 'quota in Nova: number of servers'),
            ('cores', 'quota in Nova: number of vCPUs'),
            ('ram', 'quota in Nova: memory'),
        ],
        help="""
Source of how much a user (or project, see ``entity``) is entitled to. With
``shares`` the shares by which the queue orders requests (``[fairness_cluster]
shares_file``) also divide the hosts on which VMs run. The cluster service is
asked in every round, by ``[DEFAULT] transport_url``; its last answer counts
while it is away. Shares count among those that have VMs; those outside the
tree have the average weight. With ``history``, those who used more than their
share before have less. With ``instances``, ``cores`` or ``ram`` twice the
default limit entitles to twice as much: limits of Nova and unified limits of
Keystone both count, and unlimited weighs 1. It needs ``[fairness_nova]
service``. Weights in ``quota_weights`` count before these. Set it if the queue
runs and its shares are to hold for running VMs, or if quotas say what users
pay for. All nodes must have the same value.
""",
    ),
    cfg.BoolOpt(
        'best_effort',
        default=False,
        advanced=True,
        help="""
Whether preemptible servers get only resources that no other VM of their node
wants: no CPU while others want it (``cpu.idle``, or the lowest weight where
the kernel has no such file), no protection of memory, the lowest weight of the
disks and the lowest class of the network. Their use makes their owners no
heavier. The cluster service is asked which VMs these are, by ``[DEFAULT]
transport_url``. Set it if they must not slow down other VMs; on a full node
Nova's own calls for such a VM then take long.
""",
    ),
    cfg.StrOpt(
        'guest_notice_path',
        default='',
        advanced=True,
        help="""
File in guests to which QEMU's guest agent writes that their server leaves, or
is at risk: an object of JSON with the same names as in the server's metadata,
an empty one if that is over. Set it, such as to
``/run/nova-fairness-notice.json``, if guests are to know within seconds, or
without the metadata service. It is for servers of images with
``hw_qemu_guest_agent=yes`` whose guest runs the agent; all others know from
their metadata alone. The cluster service is asked for victims, by ``[DEFAULT]
transport_url``, and the user of this agent must be allowed to change VMs of
libvirt. Empty: nothing is written into guests.
""",
    ),
    cfg.FloatOpt(
        'idle_cpus',
        default=0.02,
        min=0.0001,
        max=1.0,
        advanced=True,
        help="""
Part of each of its vCPUs, from 0.0001 to 1, below which a VM counts as idle on
average over an hour; no unit. A VM must also stay below ``idle_rate``. Raise
it if guests that do nothing for anybody count as busy.
""",
    ),
    cfg.FloatOpt(
        'idle_rate',
        default=20000.0,
        min=1.0,
        advanced=True,
        help="""
Bytes per second that an idle VM reads from its disks, writes to them and sends
together, at least 1, on average over an hour. Raise it if the logs of
guests that do nothing for anybody are larger.
""",
    ),
    cfg.StrOpt(
        'preferences_file',
        default='',
        advanced=True,
        help="""
JSON file that says how an owner's part of a node is divided among the owner's
own VMs: an object with a VM's UUID as key and a number from 0.01 to 100 as
value, such as ``{"53a7...": 3}``. Other VMs have 1. It moves nothing between
users. The file is read again when it changes. Values set by
``nova-fairness-ctl`` count before it. Empty: no file. Use it to give all
preferences in one place.
""",
    ),
    cfg.StrOpt(
        'rates',
        default='',
        advanced=True,
        help="""
Source of the rates spent for VMs. Only the metric ``SpendingRate`` reads
them. ``cluster``: the cluster service, in which users set rates for groups
with ``openstack fairness group``. It is asked in every round, by ``[DEFAULT]
transport_url``, and hears the CPU time of VMs, which it charges; its last
answer counts while it is away. Anything else is the path of a JSON file: an
object with a VM's UUID as key and a rate from 0.001 to 1000000 as value, as in
``{"53a7...": 90}``. Other VMs have 1. The file is read again when it changes.
Empty: all VMs have the same rate. Set it where owners pay for parts of their
nodes; all nodes ask the service, or none.
""",
    ),
    cfg.BoolOpt(
        'safety_net',
        default=True,
        mutable=True,
        advanced=True,
        help="""
Whether CPU weights return to neutral for a while on a node where users are
worse off with them than without, whatever the cause. Set it to false where a
policy is tried that is meant to give more to heavier users.
""",
    ),
    cfg.BoolOpt(
        'pin_vcpus',
        default=False,
        mutable=True,
        advanced=True,
        help="""
Whether the agent pins each vCPU to a CPU of the host, by the rates of VMs: the
dearest VMs first, each vCPU goes where least is spent, and two of one VM meet
only if it has more of them than the host has CPUs. VMs that Nova or another
program pinned, those with dedicated CPUs, best-effort and exempt VMs are left
alone. Unlike weights, pins can leave a CPU unused while others wait: set it
where owners pay for parts of their nodes and VMs are always busy.
""",
    ),
]
