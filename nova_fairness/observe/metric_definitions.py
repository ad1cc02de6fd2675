# SPDX-License-Identifier: Apache-2.0

"""Definitions of all metrics: names, labels and help texts.

Prometheus and the page :doc:`/reference/metrics` get their texts from this
module.
"""

from collections.abc import Mapping
import math
from typing import NamedTuple

MOST_VALUES: Mapping[str, int] = {
    # Users or operators choose these values or their number.
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
"""Largest number of values of each label in one metric."""

# Prometheus keeps the label "instance" for itself.
VM_LABELS = ('instance_uuid', 'user', 'project')


def bounded_labels(labels: tuple[str, ...]) -> tuple[str, ...]:
    """Return the labels that multiply the number of series; user and project
    follow from the VM.
    """
    is_of_vm = 'instance_uuid' in labels
    return tuple(
        each for each in labels if not (is_of_vm and each in VM_LABELS[1:])
    )


class MetricDefinition(NamedTuple):
    """Definition of a Prometheus metric.

    :ivar name: name without the prefix and without ``_total``; it ends with
        the unit.
    :ivar kind: ``counter`` or ``gauge``.
    :ivar help_text: sentences for operators, with literals in double
        backquotes.
    :ivar labels: labels of each series.
    :ivar sums: whether series beyond the bound are added up with the label
        value ``others``; otherwise they are omitted. Sums of counters are not
        possible, because they would fall.
    """

    name: str
    kind: str
    help_text: str
    labels: tuple[str, ...]
    sums: bool = False

    @property
    def most_series(self) -> int:
        """Largest number of series, including those of others."""
        labels = bounded_labels(self.labels)
        return math.prod(MOST_VALUES[label] + 1 for label in labels)

    @property
    def described(self) -> str:
        """Text for the page, with the bound."""
        bound = f' At most {self.most_series:,} series.'
        return self.help_text + bound * bool(self.labels)

    @property
    def help(self) -> str:
        """Text for Prometheus, without backquotes."""
        return self.described.replace('``', '')


def _counter(name: str, help_text: str, *labels: str) -> MetricDefinition:
    return MetricDefinition(name, 'counter', help_text, labels)


def _gauge(
    name: str, help_text: str, *labels: str, sums: bool = False
) -> MetricDefinition:
    return MetricDefinition(name, 'gauge', help_text, labels, sums)


GROUPS: Mapping[str, tuple[MetricDefinition, ...]] = {
    'rounds': (
        _counter(
            'rounds',
            'Number of rounds since the agent started, without rounds that'
            ' failed completely; the log has their errors.',
        ),
        _counter(
            'rounds_missed',
            'Number of rounds that were skipped because the previous round'
            ' took too long.',
        ),
        _counter(
            'round_duration_seconds',
            'Sum of the durations of all rounds.',
        ),
        _counter(
            'round_errors',
            'Number of errors in rounds. A persistent error, such as a libvirt'
            ' that does not answer, counts in every round.',
        ),
        _counter(
            'neutral_returns',
            'Number of times that the safety net made CPU weights neutral,'
            ' because users got less with weights than without.',
        ),
        _counter(
            'controls_changed',
            'Number of successful writes of controls of VMs.',
        ),
        _counter(
            'controls_failed',
            'Number of failed writes of controls of VMs.',
        ),
        _counter(
            'controls_drifted',
            'Number of controls that another program changed. The agent writes'
            ' its value again.',
        ),
        _counter(
            'controls_restored',
            'Number of controls whose original value was restored.',
        ),
        _counter(
            'notifications_sent',
            'Number of notifications passed to oslo.messaging, which logs'
            ' failed deliveries. 0 unless a notification driver is'
            ' configured.',
        ),
        _counter(
            'notifications_dropped',
            'Number of notifications dropped because 10,000 were waiting, or'
            ' because sending failed.',
        ),
        _counter(
            'guest_notices_sent',
            'Number of notices that guest agents wrote into guests. 0 unless'
            ' ``[fairness] guest_notice_path`` is set.',
        ),
        _counter(
            'guest_notices_failed',
            'Number of notices that guest agents failed to write. Such a'
            ' notice is only in the metadata of the server.',
        ),
    ),
    'round': (
        _gauge(
            'round_timestamp_seconds',
            'Start of the newest round, seconds since the epoch. It does not'
            ' advance if the agent hangs.',
        ),
        _gauge(
            'enforced_bool',
            '1 if the agent writes weights to the kernel, 0 if it only'
            ' observes.',
        ),
        _gauge(
            'metric_in_force_bool',
            'Always 1; the labels contain the metric and the policy in use.'
            ' Use it to alert on combinations that the status warns about.',
            'metric',
            'policy',
        ),
        _gauge(
            'shadow_metric_works_bool',
            '1 if the shadow metric was computed, 0 if it failed, was too slow'
            ' or cannot be loaded; the status has the reason. Absent without'
            ' ``[fairness] shadow_metric``. Weights do not depend on it.',
            'metric',
        ),
        _gauge(
            'plugin_quarantined_bool',
            '1 for each metric or policy in quarantine, because it failed or'
            ' was too slow; otherwise absent. Weights do not change during a'
            ' quarantine.',
            'plugin',
        ),
        _gauge(
            'state_unsaved_files',
            'Number of files in ``state_path`` that are out of date because'
            ' writing failed. The agent does not change VMs whose original'
            ' values it cannot save. Each round tries again.',
        ),
        _gauge(
            'neutral_bool',
            '1 while the safety net keeps CPU weights neutral, otherwise 0.',
        ),
        _gauge(
            'harm_ratio',
            'Part of CPU time that users lose by CPU weights, 0 to 1. If it is'
            ' above 0.02 in most of eight rounds, the safety net makes weights'
            ' neutral.',
        ),
        _gauge(
            'instances',
            'Number of VMs on this node.',
        ),
        _gauge(
            'contended_bool',
            '1 if VMs of this node compete for the resource of the control,'
            ' otherwise 0. Absent while a plugin is in quarantine.',
            'control',
        ),
        _gauge(
            'desired_epoch',
            'Epoch of the metric and policy that were set for the domain; 0 if'
            ' those of the configuration are in use. Nodes of one domain whose'
            ' epochs differ for more than a minute do not receive reports of'
            ' each other.',
        ),
        _gauge(
            'paused_bool',
            '1 if an operator paused this node, otherwise 0.',
        ),
        _gauge(
            'control_works_bool',
            '1 if the agent can set the control for VMs of this node,'
            ' otherwise 0.',
            'control',
        ),
        _gauge(
            'control_effect_ratio',
            'Measured effect of CPU weights on the CPU time of VMs: 1 as'
            ' expected, 0 as without weights. Absent until VMs with different'
            ' weights competed. Below 0.3 the control does not work.',
            'control',
        ),
    ),
    'peers': (
        _gauge(
            'peers_known',
            'Number of other nodes that sent a report.',
        ),
        _gauge(
            'peers_usable',
            'Number of other nodes whose newest report is used.',
        ),
        _gauge(
            'peers_left_out',
            'Number of other nodes whose report is not used, by reason.'
            ' Reasons without a node are absent.',
            'reason',
        ),
        _gauge(
            'report_age_seconds',
            'Age of the newest report of a node, including this node. Only the'
            ' 500 oldest reports are exported.',
            'host',
        ),
        _gauge(
            'node_left_out_bool',
            '1 for each node whose report is not used; at most 500 nodes.',
            'host',
            'reason',
        ),
        _gauge(
            'exchange_statistics',
            'Counters of the exchange of reports since the agent started, by'
            ' name. Absent without a ``transport_url``.'
            ' ``desired_refused_...`` rise when a process without the role'
            ' ``controller`` tries to set the metric.',
            'name',
        ),
        _gauge(
            'transport_statistics',
            'Counters of the messaging driver ``zmq`` by name, such as dropped'
            ' messages by reason. Other drivers have no counters.',
            'name',
        ),
    ),
    'instances': (
        _gauge(
            'user_heaviness_quotas',
            'Heaviness of a user on all nodes; 1 is a whole quota. Every node'
            ' exports it: use the maximum, never the sum.',
            'user',
        ),
        _gauge(
            'instance_heaviness_quotas',
            'Heaviness that determines the weights of a VM; 1 is a whole'
            ' quota.',
            *VM_LABELS,
        ),
        _gauge(
            'user_shadow_heaviness_quotas',
            'Heaviness of a user on all nodes by ``[fairness] shadow_metric``,'
            ' beside ``user_heaviness_quotas``. Absent without a shadow'
            ' metric.',
            'user',
        ),
        _gauge(
            'instance_shadow_heaviness_quotas',
            'Heaviness of a VM by ``[fairness] shadow_metric``, beside'
            ' ``instance_heaviness_quotas``; no weight depends on it. Absent'
            ' without a shadow metric.',
            *VM_LABELS,
        ),
        _gauge(
            'instance_usage_ratio',
            "Usage of a VM as a part of this node's capacity, smoothed.",
            *VM_LABELS,
            'resource',
        ),
        _gauge(
            'instance_cpu_stall_ratio',
            'Part of the interval in which a VM waited for a CPU. Absent if'
            ' the kernel does not report it.',
            *VM_LABELS,
        ),
        _gauge(
            'instance_idle_seconds',
            'Seconds since a VM became idle: its use, averaged over an hour,'
            ' is below ``[fairness] idle_cpus`` and ``idle_rate``.',
            *VM_LABELS,
        ),
        _gauge(
            'instance_cpu_expected_ratio',
            'Part of the CPU time of all VMs with weights that a VM should'
            ' have received by its weight in the kernel. Absent for exempt'
            ' VMs.',
            *VM_LABELS,
        ),
        _gauge(
            'instance_cpu_received_ratio',
            'Part of the CPU time of all VMs with weights that a VM received.',
            *VM_LABELS,
        ),
        _gauge(
            'instance_weight_ratio',
            'Weight of a VM; 1 is neutral, a larger weight gives more service;'
            ' 0.000001 is best effort.',
            *VM_LABELS,
            'control',
        ),
        _gauge(
            'instance_control_units',
            'Value of a control in the kernel. ``cpu``: ``cpu.shares`` of'
            ' control groups v1, ``cpu.weight`` of v2, 0 for ``cpu.idle``.'
            ' ``memory``: protected bytes. ``blkio``: a weight. ``network``:'
            ' guaranteed bytes per second in each direction.',
            *VM_LABELS,
            'control',
        ),
        _gauge(
            'instance_cpu_shares',
            'Value of the CPU control of a VM: equal to'
            ' ``instance_control_units`` with the control ``cpu``.',
            *VM_LABELS,
        ),
    ),
    'queue': (
        _counter(
            'queue_cycles',
            'Number of cycles of the cluster service since the process'
            ' started.',
        ),
        _counter(
            'queue_cycles_failed',
            'Number of cycles that ended early or skipped a part: the'
            ' database, Nova, Placement or the broker did not answer, or an'
            ' error occurred that no single input caused.',
        ),
        _counter(
            'queue_failures',
            'Number of failures by the kind of input that caused them:'
            ' ``request``, ``message``, ``account``, ``server``, ``host``,'
            ' ``row`` of the database, ``plugin`` or ``part`` of a cycle.',
            'kind',
        ),
        _gauge(
            'queue_quarantined',
            'Number of inputs in quarantine, because the service failed to'
            ' process them.',
            'kind',
        ),
        _counter(
            'queue_requests',
            'Number of requests that this process put into a state:'
            ' ``waiting``, ``starting`` (sent to Nova), ``active``,'
            ' ``ended``, ``cancelled``, ``expired`` or ``failed``.',
            'state',
        ),
        _counter(
            'queue_waited_seconds',
            'Sum of the waits of all requests that were sent to Nova. For the'
            ' mean wait, divide it by ``queue_requests`` with the state'
            ' ``starting``.',
        ),
        _gauge(
            'queue_clocks_disagree_bool',
            '1 if the clock of the host jumped by more than a minute, or'
            ' differs by more than a minute from the clock of the database.'
            ' No request expires and no server is evicted while it is 1.',
        ),
        _gauge(
            'queue_leads_bool',
            '1 if this process is the leader, which decides about starts;'
            ' otherwise 0.',
        ),
    ),
    'leader': (
        _gauge(
            'queue_waiting_requests',
            'Number of waiting requests, by project and by the reason that'
            ' their owners see.',
            'project',
            'reason',
            sums=True,
        ),
        _gauge(
            'queue_doubtful_requests',
            'Number of requests in doubt: it is unknown whether Nova received'
            ' them.',
        ),
        _gauge(
            'queue_accounts_set_aside',
            'Number of accounts with an invalid setting; ``/status`` lists'
            ' them. No request of these accounts starts until the setting is'
            ' valid.',
        ),
        _gauge(
            'queue_agents_unlike',
            'Number of agents whose report of use had another form than the'
            ' other reports at the last charge, or could not be parsed;'
            ' ``/status`` lists them. Always 0 with ``[fairness_cluster]'
            ' charge = allocated``.',
        ),
        _gauge(
            'queue_delayed_projects',
            'Number of projects that may not preempt now, because they wasted'
            ' earlier preemptions (``[fairness_cluster] room_in_vain``).',
        ),
        _gauge(
            'queue_at_risk_servers',
            'Number of servers with an at-risk notice: they would be the next'
            ' victims.',
        ),
        _gauge(
            'queue_idle_servers',
            'Number of servers that are idle for longer than'
            ' ``[fairness_cluster] idle_after``.',
        ),
        _gauge(
            'queue_snapshot_timestamp_seconds',
            'Time of the last snapshot of the cloud, seconds since the epoch.'
            ' It does not advance if Nova or Placement do not answer.',
        ),
        _gauge(
            'queue_oldest_timestamp_seconds',
            'Arrival of the request that waits longest, seconds since the'
            ' epoch; absent if no request waits.',
        ),
    ),
    'estimates': (
        _gauge(
            'queue_estimates_judged',
            'Number of started requests that had an estimate of their start,'
            ' at most the last 500.',
        ),
        _gauge(
            'queue_estimates_kept_ratio',
            'Part of these requests that started before their first estimate'
            ' ``p50`` or ``p90``, 0 to 1. Good estimates give about 0.5 and'
            ' 0.9.',
            'estimate',
        ),
        _gauge(
            'queue_estimates_late_seconds',
            'Seconds from the first estimate ``p50`` or ``p90`` to the start'
            ' of requests: the median for ``p50``, the 90th percentile for'
            ' ``p90``. Negative if requests started before the estimate.',
            'estimate',
        ),
    ),
    'evictions': (
        _counter(
            'queue_leaving_servers',
            'Number of evictions that entered a state: ``chosen``, ``told``'
            ' (the owner has a notice), ``acting``, ``asked``, ``undoing``'
            ' (the server is started again), ``gone``, ``stays`` (all actions'
            ' failed) or ``spared`` (the eviction was withdrawn).',
            'state',
        ),
        _counter(
            'queue_warned_servers',
            'Number of notices to owners that a server is at risk'
            ' (``at_risk``), or no longer at risk (``safe``).',
            'state',
        ),
        _counter(
            'queue_preemptions',
            'Number of victims of preemptions, by the reason that their owners'
            ' see and by outcome: ``freed``, ``stayed`` (all actions failed)'
            ' or ``spared`` (the eviction was withdrawn).',
            'reason',
            'outcome',
        ),
        _counter(
            'queue_preemptions_notice_seconds',
            'Sum of the notice times of preemptions: from the notice to the'
            ' first action, or to the end of the server without an action.'
            ' For the mean, divide it by the preemptions ``freed`` and'
            ' ``stayed``.',
        ),
        _counter(
            'queue_preemptions_lost_vcpu_seconds',
            'Sum of VCPUs times run time of victims at the first action: work'
            ' that may be lost.',
        ),
        _counter(
            'queue_served_by_room_requests',
            'Number of preemptors whose servers all became active.',
        ),
        _counter(
            'queue_served_by_room_seconds',
            'Sum of the times from the choice of the first victim until all'
            ' servers of its preemptor are active. A request does not count'
            ' if another process became the leader in between.',
        ),
    ),
    'border': (
        _counter(
            'partition_steps',
            'Number of steps of hosts between batch system and cloud that this'
            ' process wrote.',
            'event',
            'cause',
        ),
        _gauge(
            'partition_hosts',
            'Number of hosts that move between batch system and cloud, by'
            ' state: ``batch``, ``cloud_asked``,'
            ' ``leaving_batch``, ``cloud``, ``batch_asked``,'
            ' ``leaving_cloud`` or ``unclear``.',
            'state',
        ),
        _gauge(
            'partition_cores',
            'Cores of ``batch`` and ``cloud``: ``capacity``, ``used``,'
            ' ``wanted`` (by waiting work), ``overdue`` (by work that waits'
            ' longer than ``patience``) and ``unplaced`` (by overdue work that'
            ' fits on no single host). Absent while a system does not answer.',
            'side',
            'kind',
        ),
        _gauge(
            'partition_group_pledge',
            'Part of batch system and cloud that is pledged to a group, 0 to'
            ' 1.',
            'account',
            sums=True,
        ),
        _gauge(
            'partition_group_used',
            'Decayed use of ``batch`` and of ``cloud`` by a group, as a part'
            ' of the hosts of both systems.',
            'account',
            'side',
            sums=True,
        ),
        _gauge(
            'partition_faults',
            'Number of faults that prevent moves of hosts; ``openstack'
            ' fairness partition show`` lists them.',
        ),
        _gauge(
            'partition_snapshot_timestamp_seconds',
            'Time at which batch system and cloud were last read, seconds'
            ' since the epoch.',
        ),
    ),
    'plans': (
        _counter(
            'plan_entered_plans',
            'Number of migration plans that this process put into a state.',
            'goal',
            'state',
        ),
        _counter(
            'plan_entered_moves',
            'Number of moves of migration plans that this process put into a'
            ' state, by state and cause.',
            'state',
            'cause',
        ),
        _gauge(
            'plan_moving_servers',
            'Number of servers that a migration plan moves at present.',
        ),
        _gauge(
            'plan_resting_hosts',
            'Number of empty hosts that are disabled (``[fairness_plans]'
            ' disable_empty``).',
        ),
        _gauge(
            'plan_snapshot_timestamp_seconds',
            'Time at which hosts and servers were last read for migration'
            ' plans, seconds since the epoch.',
        ),
    ),
    'relay': (
        _counter(
            'relay_messages',
            'Number of messages of nova-api by outcome: ``passed`` (forwarded'
            ' to Nova), ``held`` (stored in the queue), ``known`` (delivered'
            ' again by the broker), ``unheld`` (a build that was forwarded'
            ' because the service is down), ``refused`` (forwarded after an'
            ' error of the database), ``unreadable`` (forwarded because it'
            ' cannot be parsed), ``unroutable`` (lost, because no service'
            ' consumes it).',
            'outcome',
        ),
        _gauge(
            'relay_lets_through_bool',
            '1 while the relay forwards builds without holding them, because'
            ' the service is down (``fail_mode = pass``); otherwise 0.',
        ),
    ),
}
"""Definitions by section of the reference page."""

DEFINITIONS: Mapping[str, MetricDefinition] = {
    each.name: each for group in GROUPS.values() for each in group
}
"""All definitions by name."""
