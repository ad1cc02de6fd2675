# SPDX-License-Identifier: Apache-2.0

"""The record of a round, and what the endpoint tells of it."""

import dataclasses
import json
import pathlib
import re
import urllib.error
import urllib.request

from prometheus_client import parser
import pytest

from nova_fairness import exception
from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from nova_fairness.observe import endpoint
from nova_fairness.observe import metrics
from nova_fairness.observe import record
from tests.unit.agent import fake_host


@pytest.fixture
def host(tmp_path):
    return fake_host.FakeHost(
        tmp_path,
        fake_host.vm('a-1', 'ann', display_name='web'),
        fake_host.vm('b-2', 'bob'),
    )


def test_a_round_is_recorded_with_all_inputs_of_a_check(host):
    entry = record.as_json(host.rounds(3))
    assert entry['version'] == 1
    assert entry['round'] == 3
    assert entry['user_count'] == 2
    assert entry['node']['capacity']['cpu_time'] == 1.0
    assert set(entry['users']) == {'ann', 'bob'}
    first = entry['instances'][0]
    assert first['name'] == 'web'
    assert first['user'] == 'ann'
    assert set(first['counters']) == set(resources.RESOURCES.names)
    assert first['counters']['cpu_time'] == pytest.approx(15.0)
    assert first['applied'] == {'cpu': 1024}
    assert first['wanting']['cpu'] is True
    assert first['heaviness'] == pytest.approx(1.0)


def test_heaviness_by_the_shadow_metric_stands_beside_the_other(host):
    done = host.rounds(3)
    assert 'shadow' not in record.as_json(done)
    key = done.incarnations[0].key
    shadow = round_model.ShadowHeaviness(
        'UniformMetric', 3, '', {key: 0.1}, {key: 0.2}, {'ann': 0.3}
    )
    entry = record.as_json(dataclasses.replace(done, shadow=shadow))
    assert entry['shadow'] == {
        'metric': 'UniformMetric',
        'round': 3,
        'problem': '',
    }
    first, second = entry['instances']
    assert first['shadow_instance_heaviness'] == 0.1
    assert first['shadow_heaviness'] == 0.2
    assert 'shadow_heaviness' not in second
    assert entry['users']['ann']['shadow_heaviness'] == 0.3
    assert 'shadow_heaviness' not in entry['users']['bob']


def exported(collector):
    return {
        family.name.removeprefix('nova_fairness_'): [
            (tuple(sample.labels.values()), sample.value)
            for sample in family.samples
        ]
        for family in collector.collect()
    }


def test_a_round_that_is_completed_late_replaces_only_itself(host):
    collector = metrics.RoundCollector()
    first, second = host.rounds(2), host.rounds(1)
    collector.complete(first)  # before the first round is known
    assert collector.newest is None
    collector.add(first)
    shadow = round_model.ShadowHeaviness('Wild', 2, 'Wild: raised')
    complete = dataclasses.replace(first, shadow=shadow)
    collector.complete(complete)
    assert collector.newest is complete
    told = exported(collector)
    assert told['shadow_metric_works_bool'] == [(('Wild',), 0.0)]
    assert told['user_shadow_heaviness_quotas'] == []
    assert told['rounds'] == [((), 1.0)]
    collector.add(second)
    collector.complete(complete)
    assert collector.newest is second
    assert 'shadow_metric_works_bool' not in exported(collector)


def test_a_record_is_plain_json_even_before_anything_is_measured(host):
    text = json.dumps(record.as_json(host.rounds(1)), allow_nan=False)
    assert 'heaviness' not in json.loads(text)['instances'][0]


def test_each_round_is_one_line_and_a_second_run_appends(host, tmp_path):
    path = tmp_path / 'rounds.jsonl'
    for _ in range(2):
        recorder = record.RoundRecorder(path)
        recorder.add(host.rounds(1))
        recorder.close()
    lines = path.read_text().splitlines()
    assert [json.loads(line)['round'] for line in lines] == [1, 2]


def test_a_record_that_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(exception.StateError, match='record_path'):
        record.RoundRecorder(tmp_path / 'none' / 'rounds.jsonl')


def test_a_line_that_was_cut_off_swallows_no_other(host, tmp_path):
    path = tmp_path / 'rounds.jsonl'
    path.write_text('{"version": 1, "rou')
    recorder = record.RoundRecorder(path)
    recorder.add(host.rounds(1))
    recorder.add(host.rounds(1))
    recorder.close()
    _, *whole = path.read_text().splitlines()
    assert [json.loads(line)['round'] for line in whole] == [1, 2]


def test_a_full_disk_is_named_and_keeps_no_recorder_from_closing(host):
    recorder = record.RoundRecorder(pathlib.Path('/dev/full'))
    with pytest.raises(exception.StateError, match=r'/dev/full: .*No space'):
        recorder.add(host.rounds(1))
    recorder.close()
    recorder.close()


def families(collector):
    return {family.name: family for family in collector.collect()}


def test_the_newest_round_is_told_and_counts_are_summed(host):
    collector = metrics.RoundCollector()
    for _ in range(4):
        collector.add(host.rounds(1))
    told = families(collector)
    assert told['nova_fairness_rounds'].samples[0].value == 4
    heavy = {
        sample.labels['user']: sample.value
        for sample in told['nova_fairness_user_heaviness_quotas'].samples
    }
    assert heavy == pytest.approx({'ann': 1.0, 'bob': 1.0})
    shares = told['nova_fairness_instance_cpu_shares'].samples
    assert [sample.value for sample in shares] == [1024, 1024]


UNITS = (
    'seconds', 'bytes', 'ratio', 'bool', 'quotas', 'shares', 'units',
    'rounds', 'missed', 'changed', 'failed', 'drifted', 'restored', 'errors',
    'epoch', 'sent', 'dropped', 'instances', 'peers_known', 'peers_usable',
    'peers_left_out', 'statistics', 'files', 'returns',
)  # fmt: skip


def test_every_name_carries_its_unit(host):
    collector = metrics.RoundCollector()
    collector.add(host.rounds(3))
    for name, family in families(collector).items():
        assert name.endswith(UNITS), name
        assert family.documentation.endswith('.'), name


def test_a_collector_without_a_round_tells_its_counts_only():
    told = families(metrics.RoundCollector())
    assert told['nova_fairness_rounds'].samples[0].value == 0
    assert 'nova_fairness_instances' not in told


@pytest.fixture
def served(host):
    collector = metrics.RoundCollector()
    made = endpoint.HttpEndpoint('127.0.0.1', 0, collector)
    made.start()
    yield made, collector
    made.stop()


def get(made, path):
    url = f'http://127.0.0.1:{made.port}{path}'
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def test_the_endpoint_serves_the_format_of_prometheus(host, served):
    made, collector = served
    collector.add(host.rounds(3))
    names = {
        family.name
        for family in parser.text_string_to_metric_families(
            get(made, '/metrics')
        )
    }
    assert 'nova_fairness_instance_weight_ratio' in names
    assert any(re.search('resident_memory_bytes', name) for name in names)


def test_the_endpoint_serves_the_status(host, served):
    made, collector = served
    collector.add(host.rounds(3))
    assert json.loads(get(made, '/status'))['round'] == 3


@pytest.mark.parametrize(('path', 'code'), [('/status', 503), ('/', 404)])
def test_the_endpoint_names_paths_it_cannot_serve(served, path, code):
    with pytest.raises(urllib.error.HTTPError) as caught:
        get(served[0], path)
    assert caught.value.code == code


def test_a_taken_port_is_named(served):
    with pytest.raises(exception.ConfigurationError, match='free port'):
        endpoint.HttpEndpoint(
            '127.0.0.1', served[0].port, metrics.RoundCollector()
        )
