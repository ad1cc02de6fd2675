# SPDX-License-Identifier: Apache-2.0

"""promtool runs every rule: alerts on what is bad and on nothing good."""

import json
import pathlib
import subprocess

import pytest
import yaml

TOP = pathlib.Path(__file__).resolve().parents[2]
FOLDER = TOP / 'etc/prometheus'
ALERTS = FOLDER / 'nova-fairness.rules.yml'
RECORDED = FOLDER / 'nova-fairness-recording.rules.yml'
P = 'nova_fairness_'
STANDS, RISES, ONE, NONE = '0x3000', '0+60x3000', '1x3000', '0x3000'
FRESH = '0+60x3000'
"""The time of each minute."""

OF_ALERTS = {
    'FairnessAgentHangs': (f'{P}round_timestamp_seconds', STANDS, FRESH),
    'FairnessRoundsMissed': (f'{P}rounds_missed_total', RISES, STANDS),
    'FairnessRoundErrors': (f'{P}round_errors_total', RISES, STANDS),
    'FairnessWritesRefused': (f'{P}controls_failed_total', RISES, STANDS),
    'FairnessForeignWrites': (f'{P}controls_drifted_total', RISES, STANDS),
    'FairnessControlStopped': (
        f'{P}control_works_bool{{control="cpu"}}',
        '1x60 0x2940',
        NONE,
    ),
    'FairnessPluginQuarantined': (
        f'{P}plugin_quarantined_bool{{plugin="x"}}',
        ONE,
        NONE,
    ),
    'FairnessStateUnsaved': (f'{P}state_unsaved_files', ONE, NONE),
    'FairnessPeersLost': (f'{P}peers_usable', '5x70 4x2930', '5x3000'),
    'FairnessNodesDiffer': (
        (f'{P}desired_epoch{{n="1"}}', f'{P}desired_epoch{{n="2"}}'),
        ('7x3000', '8x3000'),
        ('7x3000', '7x3000'),
    ),
    'FairnessChoiceRefused': (
        f'{P}exchange_statistics{{name="desired_refused_unsigned"}}',
        RISES,
        STANDS,
    ),
    'FairnessPaused': (f'{P}paused_bool', ONE, NONE),
    'FairnessNotificationsDropped': (
        f'{P}notifications_dropped_total',
        RISES,
        STANDS,
    ),
    'FairnessQueueStands': (
        f'{P}queue_snapshot_timestamp_seconds',
        STANDS,
        FRESH,
    ),
    'FairnessQueueCyclesFail': (
        f'{P}queue_cycles_failed_total',
        RISES,
        STANDS,
    ),
    'FairnessClocksDisagree': (f'{P}queue_clocks_disagree_bool', ONE, NONE),
    'FairnessQueueInDoubt': (f'{P}queue_doubtful_requests', ONE, NONE),
    'FairnessRelayUnroutable': (
        f'{P}relay_messages_total{{outcome="unroutable"}}',
        RISES,
        STANDS,
    ),
    'FairnessRelayLetsThrough': (f'{P}relay_lets_through_bool', ONE, NONE),
}
"""Series, a bad course and a good one, a value each minute, by alert."""

AT = {'FairnessPaused': '25h'}
"""When an alert is looked at; 100 minutes after the start where none is."""

OF_RECORDED = {
    'user:nova_fairness_user_heaviness_quotas:max': (
        {'{user="ann", instance="a"}': 1, '{user="ann", instance="b"}': 3},
        {'user="ann"': 3},
    ),
    'user:nova_fairness_instance_heaviness_quotas:count': (
        {'{user="ann", instance_uuid="1"}': 9, '{user="bob"}': 9},
        {'user="ann"': 1, 'user="bob"': 1},
    ),
    'user_resource:nova_fairness_instance_usage_ratio:sum': (
        {
            '{user="ann", resource="memory", instance_uuid="1"}': 2,
            '{user="ann", resource="memory", instance_uuid="2"}': 3,
        },
        {'user="ann", resource="memory"': 5},
    ),
    'user_control:nova_fairness_instance_weight_ratio:min': (
        {
            '{user="ann", control="cpu", instance_uuid="1"}': 2,
            '{user="ann", control="cpu", instance_uuid="2"}': 3,
        },
        {'user="ann", control="cpu"': 2},
    ),
}
"""Values of a metric, and those that are recorded, by name of the rule."""


def names(path):
    return [
        rule.get('alert') or rule['record']
        for group in yaml.safe_load(path.read_text())['groups']
        for rule in group['rules']
    ]


def run(path, folder, series, query, samples, at='100m'):
    """Ask promtool whether a query comes to that; what it said if not."""
    asked = {'expr': query, 'eval_time': at, 'exp_samples': samples}
    given = [
        {'series': name, 'values': values} for name, values in series.items()
    ]
    test = {
        'interval': '1m',
        'input_series': given,
        'promql_expr_test': [asked],
    }
    file = folder / 'test.yml'
    # JSON is YAML.
    file.write_text(json.dumps({'rule_files': [str(path)], 'tests': [test]}))
    done = subprocess.run(
        ['promtool', 'test', 'rules', str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    return '' if done.returncode == 0 else done.stdout + done.stderr


def courses(name, is_bad):
    series, bad, good = OF_ALERTS[name]
    chosen = bad if is_bad else good
    if isinstance(series, str):
        return {series: chosen}
    return dict(zip(series, chosen, strict=True))


def firing(name, tmp_path, *, is_bad, samples):
    query = f'count(ALERTS{{alertname="{name}", alertstate="firing"}})'
    at = AT.get(name, '100m')
    return run(ALERTS, tmp_path, courses(name, is_bad), query, samples, at)


@pytest.mark.parametrize('name', names(ALERTS))
def test_an_alert_fires_on_a_bad_course_only(name, tmp_path):
    fires = [{'labels': '{}', 'value': 1}]
    assert not firing(name, tmp_path, is_bad=True, samples=fires)
    assert not firing(name, tmp_path, is_bad=False, samples=[])
    # promtool would say so.
    assert firing(name, tmp_path, is_bad=True, samples=[])


@pytest.mark.parametrize('name', names(RECORDED))
def test_a_recording_rule_computes_its_sum(name, tmp_path):
    given, expected = OF_RECORDED[name]
    metric = name.split(':')[1]
    series = {
        f'{metric}{labels}': f'{value}x200' for labels, value in given.items()
    }
    samples = [
        {'labels': f'{name}{{{labels}}}', 'value': value}
        for labels, value in expected.items()
    ]
    assert not run(RECORDED, tmp_path, series, name, samples)
    assert run(RECORDED, tmp_path, series, name, samples[:-1])
