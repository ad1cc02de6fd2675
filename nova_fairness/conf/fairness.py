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
    """Type of an option with one number for all controls and exceptions:
    ``20,network:50``.

    The parsed value is a mapping from controls to numbers; its key ``None``
    stands for all other controls.
    """

    def __init__(self, number: types.Float) -> None:
        super().__init__(type_name='number, or control:number, ...')
        self._number = number

    def __call__(self, value: str) -> Mapping[str | None, float]:
        """Parse the text of an option into numbers by control.

        :raises ValueError: if a part of the text names an unknown control, or
            has no number.
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
"""Defaults of the options of type :class:`ByControl`."""


def by_control(
    name: str, configured: Mapping[str | None, float] | None
) -> dict[str | None, float]:
    """Return the number of all controls, by ``None``, and the exceptions.

    :param name: one of :data:`BY_CONTROL`.
    :param configured: parsed value of the option; None if it is not set.
    """
    default = BY_CONTROL[name]
    return {
        None: default[None],
        **(default if configured is None else configured),
    }


def option(
    name: str,
    bounds: tuple[float, float],
    help_text: str,
    advanced: bool = False,
) -> cfg.Opt:
    """Create an option of type :class:`ByControl`; its default is ``None``."""
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
Name of this node in the exchange with other nodes and in Nova. Set it only if
nova-compute uses another name than the host name.
""",
    ),
    cfg.StrOpt(
        'metric',
        default=defaults.METRIC,
        mutable=True,
        help="""
Metric that computes how heavy a VM and its user are. This package has
``DominantShareMetric`` (the largest part of any resource),
``AssetFairnessMetric`` (the sum of all parts), ``GreedinessMetric`` (charges
VMs for their endowment, used or unused; for the policy ``thesis``),
``SpendingRate`` (the rate that an owner spends for a VM; for the policy
``proportional``) and ``UniformMetric`` (all users are equal). Other packages
can add metrics. Change it if your cloud defines fairness differently. Log and
status warn if users can get less with this metric and policy than without an
agent. Can be changed while the agent runs (SIGHUP), which also ends a plugin's
quarantine.
""",
    ),
    cfg.StrOpt(
        'shadow_metric',
        default='',
        mutable=True,
        help="""
Second metric that is computed in every round beside the one in use, from the
same measurements, and only reported: status, API, Prometheus and record show
the heaviness of users and VMs by both. It never changes a weight. If it fails
or is slow, the status says so, and the rounds go on. Empty: none. Set it to
compare a metric with the one in use before you use it. Can be changed while
the agent runs (SIGHUP), which also ends its quarantine.
""",
    ),
    cfg.StrOpt(
        'policy',
        default=defaults.POLICY,
        mutable=True,
        help="""
Policy that turns heaviness into weights. ``foresight`` computes the weights
that make all competing users equally heavy on all nodes, and sets them at
once. ``feedback`` approaches these weights step by step, and does not use the
demand on other nodes. ``thesis`` is the fixed mapping of the original system,
for ``GreedinessMetric``. ``proportional`` sets weights at once in proportion
to the rates of ``SpendingRate``. Change it to compare policies. Can be changed
while the agent runs (SIGHUP).
""",
    ),
    cfg.FloatOpt(
        'interval',
        default=10.0,
        min=0.2,
        max=3600.0,
        help="""
Seconds from the start of one round to the start of the next. With a shorter
interval the agent reacts faster and uses proportionally more CPU time; 1 is
practical. If a round takes longer than the interval, the rounds that it
overlaps are skipped. Lower it if VMs are busy for only a few seconds at a
time.
""",
    ),
    cfg.BoolOpt(
        'enforce',
        default=True,
        mutable=True,
        help="""
Whether the agent changes the weights of VMs. With ``false`` it measures,
exchanges totals and reports the weights that it would set, and restores the
original values of all controls. Use ``false`` on a new node first. Can be
changed while the agent runs (SIGHUP).
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
Weight of the newest interval in the smoothed usage, from 0.01 to 1; earlier
intervals have the remaining weight. No unit. Lower it to react less to short
bursts; with 1 only the newest interval counts.
""",
    ),
    cfg.ListOpt(
        'controls',
        item_type=types.String(choices=CONTROLS),
        default=list(CONTROLS),
        mutable=True,
        help="""
Controls that the agent sets: ``cpu`` (shares), ``memory`` (protection),
``blkio`` (weight of the disks) and ``network`` (class of traffic control).
Change it if another program sets a control. The log and the status name the
controls that this node cannot set; the other controls work without them. Can
be changed while the agent runs (SIGHUP); the original values of a removed
control are restored.
""",
    ),
    option(
        'max_weight_ratio',
        (1.0, 1000.0),
        """
Largest weight on a node divided by the smallest weight. No unit. It limits how
much a heavy VM is slowed down in favour of a light VM. A single number holds
for all controls; ``20,network:50`` sets another number for ``network``. Raise
it to make light VMs faster, but keep ``cpu`` at 20 or below: with a larger
number the management thread of a heavy VM becomes slow, and Nova's calls for
the VM take seconds. The policy ``thesis`` does not use it.
""",
    ),
    option(
        'largest_step',
        (1.01, 1000.0),
        """
Largest factor by which a weight grows or shrinks in one round. No unit. A
single number holds for all controls; ``4,memory:1.5`` sets another number for
``memory``. Lower it to limit the effect of a faulty metric; the agent then
reacts more slowly. The policy ``thesis`` does not use it.
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
Seconds that a metric or a policy may take in a round. A plugin that takes
longer is put into quarantine: the weights stay unchanged, and log and status
name the plugin. It is tried again after a minute, then after increasing pauses
of up to an hour. If you set the plugin again, it is tried at once. Time in
which a busy host gives the plugin no CPU does not count, up to ten times the
deadline. Raise it for a slow plugin on a node with many VMs.
""",
    ),
    cfg.StrOpt(
        'connection_uri',
        default='qemu:///system',
        advanced=True,
        help="""
URI of the libvirt connection of this node. Change it if nova-compute uses
another URI.
""",
    ),
    cfg.FloatOpt(
        'reconcile_interval',
        default=60.0,
        min=1.0,
        max=3600.0,
        advanced=True,
        help="""
Seconds from one complete comparison with libvirt's list of VMs to the next.
Normally events of libvirt report changes at once; this interval limits the
delay if an event is lost. Lower it if the agent notices VMs late.
""",
    ),
    cfg.StrOpt(
        'state_path',
        default='/var/lib/nova-fairness',
        advanced=True,
        help="""
Directory of the state that must survive a restart: the original values of
controls, and the memory of the policy. It must be writable, survive a reboot
and be used by one agent only. Change it if ``/var/lib`` does not meet these
conditions.
""",
    ),
    cfg.StrOpt(
        'record_path',
        default='',
        advanced=True,
        help="""
File to which each round is appended as one JSON object: counters, usage,
heaviness, weights. Empty: no record. The file grows without limit, by about 1
kB per VM and round. Set it for evaluations only.
""",
    ),
    cfg.ListOpt(
        'exempt',
        default=[],
        mutable=True,
        help="""
IDs of users, projects and servers whose VMs are never changed. These VMs keep
the original values of their controls. Their use still counts for their owner's
heaviness. Use it for VMs that must never be slowed down. Write complete IDs of
Keystone and UUIDs of servers. Can be changed while the agent runs (SIGHUP);
when a VM becomes exempt, its original values are restored.
""",
    ),
    cfg.StrOpt(
        'owners_file',
        default='',
        advanced=True,
        help="""
JSON file with the owners of VMs without Nova's metadata: an object with a VM's
UUID or libvirt name as key and ``{"user": ..., "project": ...}`` as value. Use
it for VMs that Nova did not start. Empty: all such VMs belong to one owner
with the name ``unowned``.
""",
    ),
    cfg.Opt(
        'quota_weights',
        type=types.Dict(types.Float(min=0.001, max=1e6)),
        default={},
        mutable=True,
        help="""
Weights of users with a larger or smaller quota: the ID of a user (or project,
see ``entity``) and a weight from 0.001 to 1e6, such as ``6a1f:2,77b0:0.5``. No
unit. All other users have weight 1. A user's quota is the user's weight
divided by the sum of the weights of all users with VMs. Set it if users pay
for different quotas. Can be changed while the agent runs (SIGHUP).
""",
    ),
    cfg.StrOpt(
        'quota_source',
        default='',
        choices=[
            ('', 'all users have the same quota'),
            ('shares', 'shares of the queue'),
            ('history', 'shares of the queue, and past use'),
            ('instances', 'quota in Nova: number of servers'),
            ('cores', 'quota in Nova: number of vCPUs'),
            ('ram', 'quota in Nova: memory'),
        ],
        help="""
Source of the weights of users' quotas (or of projects', see ``entity``). With
``shares`` the shares by which the queue orders requests (``[fairness_cluster]
shares_file``) also divide hosts among running VMs. The agent queries the
cluster service in every round, by ``[DEFAULT] transport_url``; while the
service is down, its last answer is used. Only shares of users with VMs count;
users outside the share tree have the average weight. With ``history``, users
who used more than their share in the past get less. With ``instances``,
``cores`` or ``ram``, twice the default limit gives twice the weight: limits of
Nova and unified limits of Keystone both count, and an unlimited quota has
weight 1. These three need ``[fairness_nova] service``. ``quota_weights`` takes
precedence over this option. Set it if the shares of the queue are to apply to
running VMs, or if users pay according to their quotas. All nodes must have the
same value.
""",
    ),
    cfg.BoolOpt(
        'best_effort',
        default=False,
        advanced=True,
        help="""
Whether preemptible servers get only resources that no other VM of their node
wants: no CPU time while other VMs want it (``cpu.idle``, or the lowest weight
if the kernel has no such file), no memory protection, the lowest disk weight
and the lowest network class. Their use does not make their owners heavier. The
agent queries the cluster service for preemptible VMs, by ``[DEFAULT]
transport_url``. Set it if preemptible servers must not slow down other VMs. On
a full node Nova's own calls for such a VM then take long.
""",
    ),
    cfg.StrOpt(
        'guest_notice_path',
        default='',
        advanced=True,
        help="""
Path of a file in guests. QEMU's guest agent writes the notice into this file
when the server is to be evicted or is at risk: a JSON object with the same
keys as in the server's metadata. The object is empty when the notice is
withdrawn. Set it, for example to ``/run/nova-fairness-notice.json``, if guests
must receive notices within seconds, or without the metadata service. Only
servers of images with ``hw_qemu_guest_agent=yes`` whose guest runs QEMU's
agent get the file; all other servers have only the metadata. The fairness
agent queries the cluster service for notices, by ``[DEFAULT] transport_url``.
The user that runs the fairness agent must be permitted to change VMs in
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
Average CPU use per vCPU over an hour, from 0.0001 to 1, below which a VM
counts as idle; no unit. The VM must also stay below ``idle_rate``. Raise it if
guests without useful work count as busy.
""",
    ),
    cfg.FloatOpt(
        'idle_rate',
        default=20000.0,
        min=1.0,
        advanced=True,
        help="""
Bytes per second, at least 1, below which a VM counts as idle: the sum of disk
reads, disk writes and sent traffic, on average over an hour. Raise it if
guests without useful work write or send more, for example logs.
""",
    ),
    cfg.StrOpt(
        'preferences_file',
        default='',
        advanced=True,
        help="""
JSON file with preferences, which divide an owner's part of a node among the
VMs of that owner: an object with a VM's UUID as key and a number from 0.01 to
100 as value, such as ``{"53a7...": 3}``. Other VMs have 1. The parts of other
users do not change. The file is read again when it changes. Values set by
``nova-fairness-ctl`` take precedence. Empty: no file. Use it to manage all
preferences in one place.
""",
    ),
    cfg.StrOpt(
        'rates',
        default='',
        advanced=True,
        help="""
Source of the rates that owners spend for VMs. Only the metric ``SpendingRate``
uses rates. ``cluster``: the cluster service, in which users set rates for
groups with ``openstack fairness group``. The agent queries the service in
every round, by ``[DEFAULT] transport_url``, and reports the CPU time of VMs,
which the service charges. While the service is down, its last answer is used.
Any other value is the path of a JSON file: an object with a VM's UUID as key
and a rate from 0.001 to 1000000 as value, as in ``{"53a7...": 90}``. Other VMs
have 1. The file is read again when it changes. Empty: all VMs have the same
rate. Set it if owners pay for parts of their nodes. Either all nodes use
``cluster``, or none.
""",
    ),
    cfg.BoolOpt(
        'safety_net',
        default=True,
        mutable=True,
        advanced=True,
        help="""
Whether CPU weights become neutral for a while on a node where users get less
with weights than without them, for any cause. Set it to false if you test a
policy that deliberately gives more to heavier users.
""",
    ),
    cfg.BoolOpt(
        'pin_vcpus',
        default=False,
        mutable=True,
        advanced=True,
        help="""
Whether the agent pins each vCPU to a CPU of the host, by the rates of VMs. VMs
with the highest rates are pinned first, and each vCPU is pinned to the CPU
with the smallest sum of rates. Two vCPUs of one VM share a CPU only if the VM
has more vCPUs than the host has CPUs. The agent does not pin VMs that Nova or
another program pinned, VMs with dedicated CPUs, best-effort and exempt VMs.
Unlike weights, pins can leave a CPU unused while vCPUs wait. Set it if owners
pay for parts of their nodes and VMs are always busy.
""",
    ),
]
