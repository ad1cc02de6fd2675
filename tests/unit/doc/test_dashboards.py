# SPDX-License-Identifier: Apache-2.0

"""Dashboards ask for metrics and labels that there are."""

import importlib.util
import json
import pathlib
import re

import pytest

from tests.fixtures import documented
from tests.fixtures import manual_fields

TOP = pathlib.Path(__file__).resolve().parents[3]
FILES = sorted(TOP.joinpath('etc/grafana').glob('*.json'))
METRICS = documented.documented_fields(manual_fields.page_of_metrics())
OF_SCRAPE = {'instance', 'job'}


def load_dashboards():
    path = TOP / 'tools/dashboards.py'
    spec = importlib.util.spec_from_file_location('dashboards', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope='module')
def dashboards():
    return load_dashboards()


def panels():
    return [
        pytest.param(panel, id=f'{path.stem}: {panel["title"]}')
        for path in FILES
        for panel in json.loads(path.read_text('utf-8'))['panels']
    ]


def labels_of(metric):
    return OF_SCRAPE.union(METRICS[metric].partition('; ')[2].split(', '))


def wrong_names(query, legend):
    """Metrics and labels of a query that no program of ours exports."""
    metrics = set(re.findall(r'nova_fairness_\w+', query))
    unknown = metrics - set(METRICS)
    asked = set(re.findall(r'[{,]\s*(\w+)\s*[=!]', query))
    asked.update(re.findall(r'\{\{(\w+)\}\}', legend))
    for group in re.findall(r'by \(([^)]*)\)', query):
        asked.update(group.split(', '))
    for metric in metrics - unknown:
        unknown |= asked - labels_of(metric)
    return unknown


def test_each_file_matches_the_description(dashboards):
    assert {path.stem for path in FILES} == set(dashboards.PAGES)
    for path in FILES:
        assert path.read_text('utf-8') == dashboards.text(path.stem) + '\n'


def test_the_recording_rules_match_the_description(dashboards):
    assert dashboards.RULES.read_text('utf-8') == dashboards.rules()
    for rule in dashboards.RECORDED:
        assert not wrong_names(rule.query, '')


def test_each_recorded_series_is_asked_for_by_a_panel(dashboards):
    asked = {
        name
        for page in dashboards.PAGES.values()
        for graph in page.graphs
        for name in re.findall(r'[\w]+:\w+:\w+', graph.query)
    }
    assert asked == {rule.name for rule in dashboards.RECORDED}


@pytest.mark.parametrize('panel', panels())
def test_a_legend_names_labels_that_a_recording_rule_keeps(panel, dashboards):
    [target] = panel['targets']
    named = set(re.findall(r'\{\{(\w+)\}\}', target['legendFormat']))
    for rule in dashboards.RECORDED:
        if rule.name in target['expr']:
            assert named == set(rule.by.split(', '))


@pytest.mark.parametrize('panel', panels())
def test_a_panel_asks_for_metrics_and_labels_that_there_are(panel):
    [target] = panel['targets']
    assert 'nova_fairness_' in target['expr']
    assert not wrong_names(target['expr'], target['legendFormat'])


@pytest.mark.parametrize('panel', panels())
def test_a_panel_asks_for_the_rise_of_counters_only(panel):
    [target] = panel['targets']
    risen = re.findall(r'rate\((\w+)', target['expr'])
    for name in re.findall(r'nova_fairness_\w+', target['expr']):
        assert (name in risen) == METRICS[name].startswith('counter')


@pytest.mark.parametrize('panel', panels())
def test_a_legend_names_labels_that_the_query_keeps(panel):
    [target] = panel['targets']
    kept = re.findall(r'by \(([^)]*)\)', target['expr'])
    if kept:
        named = set(re.findall(r'\{\{(\w+)\}\}', target['legendFormat']))
        assert named == set(kept[0].split(', '))


@pytest.mark.parametrize(
    ('query', 'legend', 'wrong'),
    [
        ('nova_fairness_no_such', '{{instance}}', {'nova_fairness_no_such'}),
        ('nova_fairness_instances{user="a"}', '', {'user'}),
        ('sum by (user) (nova_fairness_instances)', '', {'user'}),
        ('nova_fairness_instances', '{{user}}', {'user'}),
    ],
)
def test_an_unknown_metric_or_label_is_found(query, legend, wrong):
    assert wrong_names(query, legend) == wrong


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.stem)
def test_a_dashboard_has_variables_units_and_a_link_to_the_manual(path):
    board = json.loads(path.read_text('utf-8'))
    selected = board['templating']['list'][1]
    metric = re.match(r'label_values\(.*?(nova_\w+)', selected['query'])[1]
    assert selected['name'] in labels_of(metric)
    assert all(
        panel['fieldConfig']['defaults']['unit'] for panel in board['panels']
    )
    [link] = board['links']
    page = link['url'].removeprefix('${manual}/').removesuffix('.html')
    assert TOP.joinpath(f'doc/source/{page}.rst').is_file()
