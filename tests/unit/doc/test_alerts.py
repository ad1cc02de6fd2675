# SPDX-License-Identifier: Apache-2.0

"""Alert rules ask for metrics and labels that there are."""

import pathlib
import re

import pytest
import yaml

from tests.fixtures import documented
from tests.fixtures import manual_fields

TOP = pathlib.Path(__file__).resolve().parents[3]
RULES = [
    rule
    for group in yaml.safe_load(
        TOP.joinpath('etc/prometheus/nova-fairness.rules.yml').read_text()
    )['groups']
    for rule in group['rules']
]
METRICS = documented.documented_fields(manual_fields.page_of_metrics())
OF_SCRAPE = {'instance', 'job'}


def asked(rule):
    return re.findall(r'nova_fairness_\w+', rule['expr'])


@pytest.mark.parametrize('rule', RULES, ids=lambda rule: rule['alert'])
def test_a_rule_asks_for_metrics_of_agents(rule):
    assert asked(rule)
    assert set(asked(rule)) <= set(METRICS)
    labels = OF_SCRAPE.union(
        *(METRICS[name].partition('; ')[2].split(', ') for name in asked(rule))
    )
    said = ' '.join(rule['annotations'].values())
    assert set(re.findall(r'\$labels\.(\w+)', said)) <= labels
    for name in re.findall(r'nova_fairness_\w+', said):
        assert name in METRICS


@pytest.mark.parametrize('rule', RULES, ids=lambda rule: rule['alert'])
def test_counters_are_asked_for_their_rise_and_gauges_are_not(rule):
    risen = re.findall(r'(?:rate|increase)\((\w+)', rule['expr'])
    for name in asked(rule):
        assert (name in risen) == METRICS[name].startswith('counter')


def test_the_page_lists_every_alert():
    page = TOP.joinpath('doc/source/admin/watching.rst').read_text('utf-8')
    (place,) = re.findall(r'^\.\. alerts:: (\S+)$', page, re.MULTILINE)
    text = manual_fields.load('alerts').text(place)
    listed = re.findall(r'^``(Fairness\w+)``$', text, re.MULTILINE)
    assert listed == [rule['alert'] for rule in RULES]
    assert '{{' not in text
