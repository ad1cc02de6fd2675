# SPDX-License-Identifier: Apache-2.0

"""The reference pages name every metric and every key that there is."""

import dataclasses

from prometheus_client import parser
import pytest

from nova_fairness.model import report
from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from nova_fairness.observe import endpoint
from nova_fairness.observe import metrics
from nova_fairness.observe import queue
from nova_fairness.observe import record
from tests.fixtures import documented
from tests.fixtures import manual_fields
from tests.unit.agent import fake_host
from tests.unit.observe import test_queue

PAGES = documented.PAGES

RESOURCE_MAPS = ('capacity', 'supply', 'counters', 'usage', 'endowment')
CONTROL_MAPS = (
    'contended',
    'wanting',
    'weights',
    'wanted',
    'applied',
    'controls',
)
KEYS_OF_MAPS = {
    **dict.fromkeys(RESOURCE_MAPS, '<resource>'),
    **dict.fromkeys(CONTROL_MAPS, '<control>'),
    'users': '<user>',
    'left_out': '<host>',
    'peers': '<host>',
    'quarantined': '<plugin>',
}


def entries(name):
    return documented.documented_fields(manual_fields.page_with_schemas(name))


def shadow_of(done):
    heavy = dict.fromkeys((vm.key for vm in done.incarnations), 0.5)
    users = dict.fromkeys(('ann', 'bob'), 0.25)
    return round_model.ShadowHeaviness(
        'UniformMetric', done.number, '', heavy, heavy, users
    )


@pytest.fixture
def done(tmp_path):
    """A round in which there is something to say of everything."""
    host = fake_host.FakeHost(
        tmp_path, fake_host.vm('a-1', 'ann'), fake_host.vm('b-2', 'bob')
    )
    made = host.rounds(3)
    view = made.measured.view
    known = report.View(
        view.reports, view.age_s | {'n3': 2.5}, {'n2': 'silent for 40 s'}
    )
    return dataclasses.replace(
        made,
        quarantined={'Wild': 'raised'},
        effect=dataclasses.replace(made.effect, followed=1.0),
        shadow=shadow_of(made),
        measured=dataclasses.replace(made.measured, view=known),
    )


def exported(done):
    """Type and labels of each metric of the endpoint, by name."""
    collector = metrics.RoundCollector(
        lambda: {
            'exchange': {'sent': 1},
            'transport': {'dropped': 0},
            'notifications': {'sent': 2, 'dropped': 1},
            'notices': {'sent': 1, 'failed': 0},
        }
    )
    collector.add(done)
    waiting = queue.QueueCollector(
        lambda: test_queue.SEEN,
        lambda: ({'held': 1}, False),
        lambda: test_queue.BORDER,
        lambda: test_queue.PLANS,
    )
    return {**_scraped(waiting), **_scraped(collector)}


def _scraped(collector):
    made = endpoint.HttpEndpoint('127.0.0.1', 0, collector)
    try:
        body = b''.join(
            made._answer(
                {'PATH_INFO': '/metrics', 'REQUEST_METHOD': 'GET'},
                lambda status, headers: None,
            )
        )
    finally:
        made.stop()
    return {
        sample.name: (family.type, frozenset(sample.labels))
        for family in parser.text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def test_the_page_of_metrics_names_each_with_its_type_and_labels(done):
    said = {}
    for name, text in documented.documented_fields(
        manual_fields.page_of_metrics()
    ).items():
        kind, _, labels = text.partition('; ')
        said[name] = (kind, frozenset(filter(None, labels.split(', '))))
    assert said == exported(done)


def test_no_gauge_has_the_name_of_a_part_of_something_else(done):
    # What promtool check metrics asks of names.
    of_counters = ('_total',)
    of_histograms = ('_count', '_sum', '_bucket')
    for name, (kind, _) in exported(done).items():
        assert name.endswith(of_counters) == (kind == 'counter'), name
        assert not name.endswith(of_histograms), name


def test_the_page_of_metrics_names_no_metric_twice():
    names = list(documented.documented_fields(manual_fields.page_of_metrics()))
    assert len(names) == len(set(names))


def fields(value, path='', key=''):
    """Path of each field with the values that occur there."""
    if path:
        yield path.removesuffix('[]'), value
    if isinstance(value, dict):
        named = KEYS_OF_MAPS.get(key)
        for inner, item in value.items():
            below = f'{path}.{named or inner}'.removeprefix('.')
            yield from fields(item, below, '' if named else inner)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                for inner, part in item.items():
                    yield from fields(part, f'{path}[].{inner}', inner)


def test_the_page_of_the_record_names_every_field_with_its_type(done):
    said = entries('record.rst')
    found = dict(fields(record.as_json(done)))
    assert found.keys() == said.keys()
    for path, value in fields(record.as_json(done)):
        assert documented.has_documented_type(value, said[path]), path


def test_a_key_that_is_not_always_there_is_marked(tmp_path):
    host = fake_host.FakeHost(tmp_path, fake_host.vm('a-1', 'ann'))
    page = manual_fields.page_with_schemas('record.rst')
    first = dict(fields(record.as_json(host.rounds(1))))
    second = dict(fields(record.as_json(host.rounds(1))))
    for path in entries('record.rst'):
        text = page.split(f'``{path}`` (')[1].split('\n', 1)[1]
        marked = text.strip().startswith(('If measured', 'If decided'))
        within = '<' in path.rpartition('.')[2] or path.startswith('users.')
        if path in second and not within:
            assert marked == (path not in first), path


def test_both_pages_name_every_resource_and_control():
    names = [
        *resources.RESOURCES.names,
        *(control.value for control in resources.CONTROLS),
    ]
    for page in ('metrics.rst', 'record.rst'):
        text = (PAGES / page).read_text()
        assert [name for name in names if f'``{name}``' not in text] == []


def test_the_page_tells_the_version_of_the_record():
    text = (PAGES / 'record.rst').read_text()
    assert f'``version`` is {record.VERSION}' in text
