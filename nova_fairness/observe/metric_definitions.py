# SPDX-License-Identifier: Apache-2.0

"""Definitions of all metrics: name, labels and help.

Prometheus and the page :doc:`/reference/metrics` get their texts from here.
"""

from collections.abc import Mapping
import math
from typing import NamedTuple

MOST_VALUES: Mapping[str, int] = {
    # Others choose these, or how many there are.
    'account': 200,
    'host': 500,
    'instance_uuid': 500,
    'name': 200,
    'plugin': 50,
    'project': 200,
    'user': 200,
    # These have a closed set of values.
    'cause': 50,
    'control': 4,
    'estimate': 2,
    'event': 50,
    'goal': 10,
    'kind': 20,
    'metric': 1,
    'outcome': 20,
    'policy': 1,
    'reason': 100,
    'resource': 6,
    'side': 2,
    'state': 20,
}
"""Most values of each label in one metric."""

# Prometheus keeps the label "instance" for itself.
VM_LABELS = ('instance_uuid', 'user', 'project')


def bounded_labels(labels: tuple[str, ...]) -> tuple[str, ...]:
    """Labels whose values make series; the owner follows from the VM."""
    is_of_vm = 'instance_uuid' in labels
    return tuple(
        each for each in labels if not (is_of_vm and each in VM_LABELS[1:])
    )


class MetricDefinition(NamedTuple):
    """A metric as Prometheus knows it.

    :ivar name: without the prefix, and without ``_total``; ends with its
        unit.
    :ivar kind: ``counter`` or ``gauge``.
    :ivar text: sentences for operators. Literals are marked for the page.
    :ivar labels: of each of its series, each with a bound.
    :ivar sums: whether series beyond the bound are summed up under the name
        ``others``; else they are left out. A sum of counters would fall.
    """

    name: str
    kind: str
    text: str
    labels: tuple[str, ...]
    sums: bool = False

    @property
    def most_series(self) -> int:
        """Most series that it has, those of others included."""
        labels = bounded_labels(self.labels)
        return math.prod(MOST_VALUES[label] + 1 for label in labels)

    @property
    def described(self) -> str:
        """The text for the page, with its bound."""
        bound = f' At most {self.most_series:,} series.'
        return self.text + bound * bool(self.labels)

    @property
    def help(self) -> str:
        """The text as Prometheus serves it, without marks."""
        return self.described.replace('``', '')


def _counter(name: str, text: str, *labels: str) -> MetricDefinition:
    return MetricDefinition(name, 'counter', text, labels)


def _gauge(
    name: str, text: str, *labels: str, sums: bool = False
) -> MetricDefinition:
    return MetricDefinition(name, 'gauge', text, labels, sums)


GROUPS: Mapping[str, tuple[MetricDefinition, ...]] = {
    'rounds': (
        _counter(
            'rounds',
            'Rounds since the agent started. One that failed as a whole is'
            ' not counted; the log has its error.',
        ),
        _counter(
            'rounds_missed',
            'Rounds left out because the one before ran late.',
        ),
        _counter(
            'round_duration_seconds',
            'Time spent in rounds.',
        ),
        _counter(
            'round_errors',
            'Errors in rounds. One that lasts, such as a libvirt that does'
            ' not answer, counts in every round.',
        ),
        _counter(
            'neutral_returns',
            'Times that CPU weights returned to neutral, because users were'
            ' worse off with them than without.',
        ),
        _counter(
            'controls_changed',
            'Controls that were written.',
        ),
        _counter(
            'controls_failed',
            'Writes of controls that were refused.',
        ),
        _counter(
            'controls_drifted',
            'Controls that another program had changed. They are written'
            ' again.',
        ),
        _counter(
            'controls_restored',
            'Controls that got back what they were found with.',
        ),
        _counter(
            'notifications_sent',
            'Notifications handed to oslo.messaging, which logs what it'
            ' cannot deliver. 0 unless a driver for them is configured.',
        ),
        _counter(
            'notifications_dropped',
            'Notifications dropped because 10,000 were waiting, or because'
            ' sending failed.',
        ),
        _counter(
            'guest_notices_sent',
            'Notices that guest agents wrote. 0 unless ``[fairness]'
            ' guest_notice_path`` is set.',
        ),
        _counter(
            'guest_notices_failed',
            "Notices that a guest's agent could not write yet: only its"
            ' metadata has them.',
        ),
    ),
    'round': (
        _gauge(
            'round_timestamp_seconds',
            'When the newest round began, seconds since the epoch. It does'
            ' not advance if the agent hangs.',
        ),
        _gauge(
            'enforced_bool',
            '1 if the kernel is written, 0 if the agent only observes.',
        ),
        _gauge(
            'metric_in_force_bool',
            'Always 1; the labels name the metric and the policy in force.'
            ' Alert on a pair that is warned of.',
            'metric',
            'policy',
        ),
        _gauge(
            'plugin_quarantined_bool',
            '1 for each metric or policy in quarantine: it misbehaved, and'
            ' did not work since; otherwise absent. Weights do not move'
            ' meanwhile.',
            'plugin',
        ),
        _gauge(
            'state_unsaved_files',
            'Files in ``state_path`` that are out of date, because they'
            ' cannot be written. VMs whose base values cannot be saved are'
            ' not steered. Each round tries again.',
        ),
        _gauge(
            'neutral_bool',
            '1 while CPU weights are neutral because they did harm.',
        ),
        _gauge(
            'harm_ratio',
            'Harm by CPU weights, 0 to 1. Above 0.02 in most of eight rounds'
            ' weights return to neutral.',
        ),
        _gauge(
            'instances',
            'VMs on this node.',
        ),
        _gauge(
            'contended_bool',
            'Whether VMs of this node compete for what the control steers.'
            ' Absent while a plugin is in quarantine.',
            'control',
        ),
        _gauge(
            'desired_epoch',
            'Epoch of the metric and policy that the domain chose; 0 if'
            ' those of the configuration are in force. Nodes of one domain'
            ' that differ for longer than a minute do not hear each other.',
        ),
        _gauge(
            'paused_bool',
            '1 if an operator paused enforcement on this node.',
        ),
        _gauge(
            'control_works_bool',
            'Whether VMs of this node are steered by the control.',
            'control',
        ),
        _gauge(
            'control_effect_ratio',
            'How far VMs follow the weights of the CPU, as lately seen: 1 as'
            ' expected, 0 as if there were no weights. Absent until VMs have'
            ' competed whose weights differ. Below 0.3 the control does not'
            ' work.',
            'control',
        ),
    ),
    'peers': (
        _gauge(
            'peers_known',
            'Other nodes that were heard of.',
        ),
        _gauge(
            'peers_usable',
            'Other nodes whose newest report is used.',
        ),
        _gauge(
            'peers_left_out',
            'Other nodes whose report is not used, by reason. Reasons'
            ' without a node are absent.',
            'reason',
        ),
        _gauge(
            'report_age_seconds',
            'Age of the newest report of a node, this one among them. Only'
            ' the 500 oldest are there.',
            'host',
        ),
        _gauge(
            'node_left_out_bool',
            '1 for each known node whose report is not used, 500 at most.',
            'host',
            'reason',
        ),
        _gauge(
            'exchange_statistics',
            'Counts of the exchange of reports since the agent started.'
            ' Absent without a ``transport_url``. ``desired_refused_...``'
            ' rise when a process that is no controller tries to choose the'
            ' metric.',
            'name',
        ),
        _gauge(
            'transport_statistics',
            'Counts of the messaging driver ``zmq``, such as messages dropped'
            ' by reason. Other drivers count nothing.',
            'name',
        ),
    ),
    'instances': (
        _gauge(
            'user_heaviness_quotas',
            'Heaviness of a user over all known nodes; 1 is a whole quota.'
            ' Every node exports it: take the maximum, never the sum.',
            'user',
        ),
        _gauge(
            'instance_heaviness_quotas',
            'Heaviness by which a VM is treated; 1 is a whole quota.',
            *VM_LABELS,
        ),
        _gauge(
            'instance_usage_ratio',
            'Part of what this node has that a VM used, smoothed.',
            *VM_LABELS,
            'resource',
        ),
        _gauge(
            'instance_cpu_stall_ratio',
            'Part of the interval in which a VM waited for a CPU. Absent'
            ' where the kernel does not tell.',
            *VM_LABELS,
        ),
        _gauge(
            'instance_idle_seconds',
            'For how long a VM has done next to nothing, on average over an'
            ' hour (``[fairness] idle_cpus``, ``idle_rate``).',
            *VM_LABELS,
        ),
        _gauge(
            'instance_cpu_expected_ratio',
            'Part of the CPU time of all steered VMs that a VM should have'
            ' had by the weight that the kernel holds. Absent of VMs that are'
            ' not steered.',
            *VM_LABELS,
        ),
        _gauge(
            'instance_cpu_received_ratio',
            'Part of the CPU time of all steered VMs that a VM had.',
            *VM_LABELS,
        ),
        _gauge(
            'instance_weight_ratio',
            'Weight of a VM; 1 is neutral, more is more service; 0.000001 is'
            ' best effort.',
            *VM_LABELS,
            'control',
        ),
        _gauge(
            'instance_control_units',
            'The kernel holds: ``cpu``: ``cpu.shares`` of control'
            ' groups v1, ``cpu.weight`` of v2, 0 for ``cpu.idle``.'
            ' ``memory``: bytes that are protected. ``blkio``: a weight.'
            ' ``network``: bytes per second that the VM gets in any case, in'
            ' each direction.',
            *VM_LABELS,
            'control',
        ),
        _gauge(
            'instance_cpu_shares',
            '``instance_control_units`` of ``cpu``.',
            *VM_LABELS,
        ),
    ),
    'queue': (
        _counter(
            'queue_cycles',
            'Cycles of the cluster service since the process started.',
        ),
        _counter(
            'queue_cycles_failed',
            'Cycles that ended early or left a part out: the database, Nova,'
            ' Placement or the broker did not answer, or something failed'
            ' that no input caused.',
        ),
        _counter(
            'queue_failures',
            'Failures on an input: ``request``, ``message``, ``account``,'
            ' ``server``, ``host``, ``row`` of the database, ``plugin`` or'
            ' ``part`` of a cycle.',
            'kind',
        ),
        _gauge(
            'queue_quarantined',
            'Inputs in quarantine now, since the service failed on them.',
            'kind',
        ),
        _counter(
            'queue_requests',
            'Requests that came into a state by this process: ``waiting``,'
            ' ``starting`` (released to Nova), ``active``, ``ended``,'
            ' ``cancelled``, ``expired`` or ``failed``.',
            'state',
        ),
        _counter(
            'queue_waited_seconds',
            'Sum of the waits of all requests that were released. Divide by'
            ' the requests ``starting``.',
        ),
        _gauge(
            'queue_clocks_disagree_bool',
            '1 while the clock of the host stepped by more than a minute, or'
            ' differs as much from that of the database. Nothing expires or'
            ' is evicted then.',
        ),
        _gauge(
            'queue_leads_bool',
            '1 if this process decides what starts.',
        ),
    ),
    'leader': (
        _gauge(
            'queue_waiting_requests',
            'Requests that wait, by project and by the reason that their'
            ' owners are told.',
            'project',
            'reason',
            sums=True,
        ),
        _gauge(
            'queue_doubtful_requests',
            'Requests in doubt: it is not known whether Nova has them.',
        ),
        _gauge(
            'queue_accounts_set_aside',
            'Accounts with a setting that cannot be used; ``/status`` names'
            ' them. Nothing below them starts until it is set again.',
        ),
        _gauge(
            'queue_agents_unlike',
            'Agents whose use differed in form from the others at the last'
            ' charge, or could not be read; ``/status`` names them. Only with'
            ' ``[fairness_cluster] charge`` other than ``allocated``.',
        ),
        _gauge(
            'queue_delayed_projects',
            'Projects for which no servers are evicted now, as earlier'
            ' evictions for them were in vain (``[fairness_cluster]'
            ' room_in_vain``).',
        ),
        _gauge(
            'queue_at_risk_servers',
            'Servers whose owners are told that they are among the next'
            ' victims.',
        ),
        _gauge(
            'queue_idle_servers',
            'Servers that agents saw idle for as long as'
            ' ``[fairness_cluster] idle_after`` allows.',
        ),
        _gauge(
            'queue_snapshot_timestamp_seconds',
            'When the cloud was read last, seconds since the epoch. It does'
            ' not advance if Nova or Placement do not answer.',
        ),
        _gauge(
            'queue_oldest_timestamp_seconds',
            'When the request that waits longest came, seconds since the'
            ' epoch; absent if no request waits.',
        ),
    ),
    'estimates': (
        _gauge(
            'queue_estimates_judged',
            'Requests with an estimated and a known start, the last 500 at'
            ' most.',
        ),
        _gauge(
            'queue_estimates_kept_ratio',
            'Part of the requests with an estimated and a known start, 0 to'
            ' 1, that started by the first ``p50`` or ``p90`` that they were'
            ' told. About 0.5 and 0.9 if estimates are good.',
            'estimate',
        ),
        _gauge(
            'queue_estimates_late_seconds',
            'How long after the first ``p50`` or ``p90`` requests started:'
            ' the median for ``p50``, the ninth decile for ``p90``. Below 0:'
            ' before it.',
            'estimate',
        ),
    ),
    'evictions': (
        _counter(
            'queue_leaving_servers',
            'Evictions that came into a state: ``chosen``, ``told``,'
            ' ``acting``, ``asked``, ``undoing`` (the server is allowed to'
            ' run again), ``gone``, ``stays`` (it was not evicted) or'
            ' ``spared``.',
            'state',
        ),
        _counter(
            'queue_warned_servers',
            'Servers whose owners were told that they are at risk'
            ' (``at_risk``), or no longer (``safe``).',
            'state',
        ),
        _counter(
            'queue_preemptions',
            'Victims of preemptions, by the reason that their owners were'
            ' given and by outcome: ``freed``, ``stayed`` (they were not'
            ' evicted) or ``spared``.',
            'reason',
            'outcome',
        ),
        _counter(
            'queue_preemptions_notice_seconds',
            'Sum of the notices of preemptions: from telling the owner until'
            ' the first action, or until the server had left by itself.'
            ' Divide by the preemptions ``freed`` and ``stayed``.',
        ),
        _counter(
            'queue_preemptions_lost_vcpu_seconds',
            'VCPUs times seconds that victims had run when the first action'
            ' began: work that may be lost.',
        ),
        _counter(
            'queue_served_by_room_requests',
            'Preemptors whose servers are all active.',
        ),
        _counter(
            'queue_served_by_room_seconds',
            'Sum of the times from the choice of the first victim until the'
            ' servers of its preemptor are all active. A process that takes'
            ' over in between does not count that request.',
        ),
    ),
    'border': (
        _counter(
            'partition_steps',
            'Steps of hosts between batch and cloud that this process wrote.',
            'event',
            'cause',
        ),
        _gauge(
            'partition_hosts',
            'Hosts by where they stand: ``batch``, ``cloud_asked``,'
            ' ``leaving_batch``, ``cloud``, ``batch_asked``,'
            ' ``leaving_cloud`` or ``unclear``.',
            'state',
        ),
        _gauge(
            'partition_cores',
            'Cores of ``batch`` and ``cloud``: ``capacity``, ``used``,'
            ' ``wanted`` by all that waits, ``overdue``: what waits for'
            ' longer than ``patience``, and ``unplaced``: what of that finds'
            ' no room on single hosts. Absent while a side gives no answer.',
            'side',
            'kind',
        ),
        _gauge(
            'partition_group_pledge',
            'Part of both sides that a group was pledged, 0 to 1.',
            'account',
            sums=True,
        ),
        _gauge(
            'partition_group_used',
            'Decayed part of the hosts of both sides that a group used of'
            ' ``batch`` and ``cloud``.',
            'account',
            'side',
            sums=True,
        ),
        _gauge(
            'partition_faults',
            'Number of things that keep hosts from moving; ``openstack'
            ' fairness partition show`` names them.',
        ),
        _gauge(
            'partition_snapshot_timestamp_seconds',
            'When both sides were read last, seconds since the epoch.',
        ),
    ),
    'plans': (
        _counter(
            'plan_entered_plans',
            'Migration plans that this process led into a state.',
            'goal',
            'state',
        ),
        _counter(
            'plan_entered_moves',
            'Moves of plans that this process led into a state, and why.',
            'state',
            'cause',
        ),
        _gauge(
            'plan_moving_servers',
            'Servers that move for a plan now.',
        ),
        _gauge(
            'plan_resting_hosts',
            'Hosts that are disabled because they are not needed'
            ' (``[fairness_plans] disable_empty``).',
        ),
        _gauge(
            'plan_snapshot_timestamp_seconds',
            'When hosts and servers were read last for plans, seconds since'
            ' the epoch.',
        ),
    ),
    'relay': (
        _counter(
            'relay_messages',
            'Messages of nova-api by outcome: ``passed`` on, ``held``,'
            ' ``known`` (the broker delivered one again), ``unheld`` (a build'
            ' that passed, since the service is away), ``refused`` by the'
            ' database and therefore passed, ``unreadable`` and therefore'
            ' passed, ``unroutable`` (there is no consumer, so it is lost).',
            'outcome',
        ),
        _gauge(
            'relay_lets_through_bool',
            '1 while builds pass unheld, since the service is away'
            ' (``fail_mode = pass``).',
        ),
    ),
}
"""Definitions by the part of the page that has them."""

DEFINITIONS: Mapping[str, MetricDefinition] = {
    each.name: each for group in GROUPS.values() for each in group
}
"""All definitions by name."""
