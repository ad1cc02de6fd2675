# SPDX-License-Identifier: Apache-2.0

"""Writes etc/grafana/*.json, the dashboards for Grafana.

It writes the recording rules of their expensive panels, too:
etc/prometheus/nova-fairness-recording.rules.yml.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import pathlib
import sys

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.builders import prometheus
from grafana_foundation_sdk.builders import timeseries
from grafana_foundation_sdk.cog import encoder
from grafana_foundation_sdk.models import dashboard as models

TOP = pathlib.Path(__file__).resolve().parents[1]
FOLDER = TOP / 'etc/grafana'
RULES = TOP / 'etc/prometheus/nova-fairness-recording.rules.yml'
SOURCE = models.DataSourceRef(type_val='prometheus', uid='${source}')


@dataclasses.dataclass(frozen=True)
class Graph:
    """One panel.

    :ivar unit: a unit of Grafana, such as ``s``, ``percentunit``, ``short``.
    :ivar query: in PromQL.
    :ivar legend: of each line.
    """

    title: str
    unit: str
    query: str
    legend: str = '{{instance}}'


@dataclasses.dataclass(frozen=True)
class Page:
    """One dashboard.

    :ivar manual: page of the manual that explains it.
    :ivar variable: label that the reader selects, and the metric that has it.
    """

    title: str
    manual: str
    variable: tuple[str, str]
    graphs: Sequence[Graph]


@dataclasses.dataclass(frozen=True)
class Recorded:
    """A recording rule: what a panel would sum over all VMs each time.

    :ivar metric: without the prefix; it has a series for each VM.
    :ivar by: labels that are kept, divided by ``, ``.
    :ivar by_way: how the others are summed up, in PromQL.
    """

    metric: str
    by: str
    by_way: str

    @property
    def name(self) -> str:
        """LEVEL:METRIC:OPERATION, as Prometheus advises."""
        level = self.by.replace(', ', '_')
        return f'{level}:nova_fairness_{self.metric}:{self.by_way}'

    @property
    def query(self) -> str:
        """The value of the rule."""
        return f'{self.by_way} by ({self.by}) (nova_fairness_{self.metric})'

    def of(self, chosen: str) -> str:
        """The recorded series that a reader selects by a label."""
        return f'{self.name}{{{chosen}=~"${chosen}"}}'


HEAVINESS = Recorded('user_heaviness_quotas', 'user', 'max')
VMS = Recorded('instance_heaviness_quotas', 'user', 'count')
USAGE = Recorded('instance_usage_ratio', 'user, resource', 'sum')
LOWEST = Recorded('instance_weight_ratio', 'user, control', 'min')
RECORDED = (HEAVINESS, VMS, USAGE, LOWEST)


def _rise(name: str, by: str) -> str:
    """How much a counter rises each second."""
    return f'sum by ({by}) (rate({_value(name)}[$__rate_interval]))'


def _value(name: str) -> str:
    return f'nova_fairness_{name}{{instance=~"$instance"}}'


def _age(name: str) -> str:
    return f'time() - {_value(name)}'


PAGES: Mapping[str, Page] = {
    'node': Page(
        'Fairness: nodes',
        'admin/watching',
        ('instance', 'nova_fairness_instances'),
        (
            Graph('VMs', 'short', _value('instances')),
            Graph(
                'Time since the newest round',
                's',
                _age('round_timestamp_seconds'),
            ),
            Graph(
                'Part of each second that rounds take',
                'percentunit',
                _rise('round_duration_seconds_total', 'instance'),
            ),
            Graph(
                'Rounds missed per second',
                'short',
                _rise('rounds_missed_total', 'instance'),
            ),
            Graph(
                'Controls that VMs compete for',
                'bool',
                _value('contended_bool'),
                '{{instance}} {{control}}',
            ),
            Graph(
                'How far VMs follow the weights',
                'percentunit',
                _value('control_effect_ratio'),
                '{{instance}} {{control}}',
            ),
            Graph(
                'Waiting for a CPU, by VM',
                'percentunit',
                _value('instance_cpu_stall_ratio'),
                '{{instance_uuid}}',
            ),
            Graph(
                'Writes refused per second',
                'short',
                _rise('controls_failed_total', 'instance'),
            ),
        ),
    ),
    'users': Page(
        'Fairness: users',
        'reference/metrics',
        ('user', VMS.name),
        (
            Graph(
                'Heaviness (1 is a whole quota)',
                'short',
                HEAVINESS.of('user'),
                '{{user}}',
            ),
            Graph(
                'VMs',
                'short',
                VMS.of('user'),
                '{{user}}',
            ),
            Graph(
                'Part of a node that the VMs use, summed',
                'percentunit',
                USAGE.of('user'),
                '{{user}} {{resource}}',
            ),
            Graph(
                'Lowest weight of a VM (1 is neutral)',
                'short',
                LOWEST.of('user'),
                '{{user}} {{control}}',
            ),
        ),
    ),
    'queue': Page(
        'Fairness: queue',
        'admin/queue',
        ('instance', 'nova_fairness_queue_leads_bool'),
        (
            Graph(
                'Waiting requests, by reason',
                'short',
                f'sum by (reason) ({_value("queue_waiting_requests")})',
                '{{reason}}',
            ),
            Graph(
                'Waiting requests, by project',
                'short',
                f'topk(10, sum by (project)'
                f' ({_value("queue_waiting_requests")}))',
                '{{project}}',
            ),
            Graph(
                'Age of the oldest waiting request',
                's',
                _age('queue_oldest_timestamp_seconds'),
            ),
            Graph(
                'Requests per second that came into a state',
                'short',
                _rise('queue_requests_total', 'state'),
                '{{state}}',
            ),
            Graph(
                'Estimates that were kept',
                'percentunit',
                _value('queue_estimates_kept_ratio'),
                '{{estimate}}',
            ),
            Graph(
                'Time since the cloud was read',
                's',
                _age('queue_snapshot_timestamp_seconds'),
            ),
            Graph(
                'Cycles per second that failed',
                'short',
                _rise('queue_cycles_failed_total', 'instance'),
            ),
            Graph(
                'Messages per second at the relay',
                'short',
                # A relay has a port, and so an instance, of its own.
                'sum by (outcome)'
                ' (rate(nova_fairness_relay_messages_total'
                '[$__rate_interval]))',
                '{{outcome}}',
            ),
        ),
    ),
    'evictions': Page(
        'Fairness: evictions',
        'admin/preemption',
        ('instance', 'nova_fairness_queue_leads_bool'),
        (
            Graph(
                'Victims per second, by outcome',
                'short',
                _rise('queue_preemptions_total', 'outcome'),
                '{{outcome}}',
            ),
            Graph(
                'Victims per second, by reason',
                'short',
                _rise('queue_preemptions_total', 'reason'),
                '{{reason}}',
            ),
            Graph(
                'Leaving servers per second, by state',
                'short',
                _rise('queue_leaving_servers_total', 'state'),
                '{{state}}',
            ),
            Graph('Servers at risk', 'short', _value('queue_at_risk_servers')),
            Graph(
                'VCPU seconds per second that may be lost',
                'short',
                _rise('queue_preemptions_lost_vcpu_seconds_total', 'instance'),
            ),
        ),
    ),
    'plans': Page(
        'Fairness: migration plans',
        'reference/metrics',
        ('instance', 'nova_fairness_plan_moving_servers'),
        (
            Graph('Servers that move', 'short', _value('plan_moving_servers')),
            Graph(
                'Hosts that are not needed',
                'short',
                _value('plan_resting_hosts'),
            ),
            Graph(
                'Plans per second, by goal and state',
                'short',
                _rise('plan_entered_plans_total', 'goal, state'),
                '{{goal}} {{state}}',
            ),
            Graph(
                'Moves per second, by state and cause',
                'short',
                _rise('plan_entered_moves_total', 'state, cause'),
                '{{state}} {{cause}}',
            ),
        ),
    ),
    'border': Page(
        'Fairness: hosts between batch and cloud',
        'reference/metrics',
        ('instance', 'nova_fairness_partition_hosts'),
        (
            Graph(
                'Hosts, by state',
                'short',
                _value('partition_hosts'),
                '{{state}}',
            ),
            Graph(
                'Cores of both sides',
                'short',
                _value('partition_cores'),
                '{{side}} {{kind}}',
            ),
            Graph(
                'Part that a group was pledged',
                'percentunit',
                _value('partition_group_pledge'),
                '{{account}}',
            ),
            Graph(
                'Part that a group used',
                'percentunit',
                _value('partition_group_used'),
                '{{account}} {{side}}',
            ),
            Graph(
                'Faults that keep hosts from moving',
                'short',
                _value('partition_faults'),
            ),
            Graph(
                'Steps of hosts per second',
                'short',
                _rise('partition_steps_total', 'event, cause'),
                '{{event}} {{cause}}',
            ),
        ),
    ),
}


def _panel(graph: Graph) -> timeseries.Panel:
    query = prometheus.Dataquery().expr(graph.query)
    return (
        timeseries.Panel()
        .title(graph.title)
        .unit(graph.unit)
        .datasource(SOURCE)
        .span(12)
        .height(8)
        .with_target(query.legend_format(graph.legend).ref_id('A'))
    )


def _selection(label: str, metric: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(label)
        .datasource(SOURCE)
        .query(f'label_values({metric}, {label})')
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .multi(True)
        .include_all(True)
        .all_value('.*')
    )


def text(name: str) -> str:
    """The JSON of a dashboard."""
    page = PAGES[name]
    made = (
        dashboard.Dashboard(page.title)
        .uid(f'nova-fairness-{name}')
        .tags(['nova-fairness'])
        .time('now-6h', 'now')
        .refresh('30s')
        .with_variable(
            dashboard.DatasourceVariable('source').type('prometheus')
        )
        .with_variable(_selection(*page.variable))
        .with_variable(
            dashboard.TextBoxVariable('manual')
            .label('Address of the manual')
            .default_value('/nova-fairness')
        )
        .link(
            dashboard.DashboardLink('Manual')
            .type(models.DashboardLinkType.LINK)
            .url(f'${{manual}}/{page.manual}.html')
            .target_blank(True)
        )
    )
    for graph in page.graphs:
        made.with_panel(_panel(graph))
    return encoder.JSONEncoder(sort_keys=True, indent=2).encode(made.build())


def rules() -> str:
    """The recording rules, in YAML."""
    written = ''.join(
        f'      - record: {each.name}\n        expr: {each.query}\n'
        for each in RECORDED
    )
    return (
        '# SPDX-License-Identifier: Apache-2.0\n#\n'
        '# Sums over VMs for the dashboard of users, for rule_files of\n'
        '# Prometheus. tools/dashboards.py writes this file.\n'
        'groups:\n  - name: nova-fairness-recording\n    rules:\n'
        f'{written}'
    )


def main() -> int:
    """Write all dashboards and recording rules."""
    RULES.write_text(rules(), encoding='utf-8')
    FOLDER.mkdir(exist_ok=True)
    for name in PAGES:
        path = FOLDER / f'{name}.json'
        path.write_text(text(name) + '\n', encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
