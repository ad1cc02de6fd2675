# SPDX-License-Identifier: Apache-2.0

import sys

import pytest
from stevedore import _cache
from stevedore import extension

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.measure.metrics import greediness

OURS = (
    'AssetFairnessMetric',
    'DominantShareMetric',
    'GreedinessMetric',
    'SpendingRate',
    'UniformMetric',
)

MODULE = """
from nova_fairness.measure.metrics import uniform

class Good(uniform.UniformMetric):
    description = 'A guest.'

class Demanding(uniform.UniformMetric):
    def __init__(self, argument):
        pass

class Odd(uniform.UniformMetric):
    suits = {'thesis'}

class Silent(uniform.UniformMetric):
    description = ''

from nova_fairness.measure.metric import Metric as Unfinished

def function():
    pass
"""

ENTRY_POINTS = """
[nova_fairness.metrics]
Good = guest_metrics:Good
Demanding = guest_metrics:Demanding
Odd = guest_metrics:Odd
Silent = guest_metrics:Silent
Unfinished = guest_metrics:Unfinished
function = guest_metrics:function
Missing = guest_metrics:Missing
Broken = guest_broken:Broken

[nova_fairness.policies]
Good = guest_metrics:Good
"""


def install(folder, name, entry_points):
    distribution = folder / f'{name}-1.0.dist-info'
    distribution.mkdir()
    (distribution / 'METADATA').write_text(
        f'Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n'
    )
    (distribution / 'entry_points.txt').write_text(entry_points)


@pytest.fixture
def guests(tmp_path, monkeypatch):
    """A real installed distribution with good and bad plugins."""
    (tmp_path / 'guest_metrics.py').write_text(MODULE)
    (tmp_path / 'guest_broken.py').write_text('import no_such_module\n')
    install(tmp_path, 'guests', ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(_cache._c, '_disable_caching', True)
    monkeypatch.setattr(extension.ExtensionManager, 'ENTRY_POINT_CACHE', {})
    yield tmp_path
    sys.modules.pop('guest_metrics', None)


def test_every_metric_of_the_package_can_be_loaded():
    assert plugins.metric_names() == OURS
    for name in OURS:
        assert type(plugins.load_metric(name)).__name__ == name


def test_every_policy_of_the_package_can_be_loaded():
    assert plugins.policy_names() == (
        'feedback',
        'foresight',
        'proportional',
        'thesis',
    )
    for name in plugins.policy_names():
        assert plugins.load_policy(name).description


def test_every_order_of_the_package_can_be_loaded():
    assert plugins.order_names() == (
        'admission_fair_sharing',
        'distribution',
        'dominant_share',
        'fair_tree',
        'fass',
        'fifo',
        'multifactor',
        'synergy',
    )
    for name in plugins.order_names():
        assert plugins.load_order(name).description


def test_an_order_plugin_gets_its_parameters():
    assert plugins.load_order('multifactor', {'age': 7.0}).age == 7


@pytest.mark.parametrize(
    ('name', 'numbers', 'message'),
    [
        ('none', {}, "no order 'none'; installed: admission_fair_sharing, "),
        ('fair_tree', {'age': 1.0}, 'has no number age; it has: charge'),
        ('fifo', {'age': 1.0}, 'has no number age; it has: none'),
        (
            'fair_tree',
            {'charge': 2.0},
            'with charge = 2.0: charge must be a number from 0 to 1, got 2',
        ),
        ('multifactor', {'longest_s': 0.0}, 'longest_s must be a number'),
        ('fass', {'published': 0.5}, 'published must be 0 or 1, got 0.5'),
        ('synergy', {'vcpus': float('nan')}, 'vcpus must be a number from'),
    ],
)
def test_an_impossible_order_is_named(name, numbers, message):
    with pytest.raises(exception.PluginError, match=message):
        plugins.load_order(name, numbers)


def test_descriptions_are_those_of_the_classes():
    got = plugins.describe_metrics()
    assert tuple(got) == OURS
    expected = greediness.GreedinessMetric.description
    assert got['GreedinessMetric'] == expected
    assert tuple(plugins.describe_policies()) == plugins.policy_names()


def test_unknown_metric_is_named_with_those_that_exist():
    with pytest.raises(exception.UnknownPlugin) as caught:
        plugins.load_metric('Nonsense')
    assert str(caught.value) == (
        "no metric 'Nonsense'; installed: AssetFairnessMetric, "
        'DominantShareMetric, GreedinessMetric, SpendingRate, '
        'UniformMetric'
    )


def test_unknown_policy_is_named_with_those_that_exist():
    with pytest.raises(
        exception.UnknownPlugin,
        match="no policy 'thesys'; installed: feedback, foresight, "
        'proportional, thesis',
    ):
        plugins.load_policy('thesys')


def test_class_path_of_the_original_is_answered_with_the_name_to_use():
    path = 'nova.fairness.metrics.greediness.GreedinessMetric'
    with pytest.raises(
        exception.UnknownPlugin, match=r'class alone: GreedinessMetric$'
    ):
        plugins.load_metric(path)


def test_metric_of_another_distribution_can_be_loaded(guests):
    assert 'Good' in plugins.metric_names()
    assert plugins.load_metric('Good').description == 'A guest.'


@pytest.mark.parametrize(
    ('name', 'message'),
    [
        (
            'Broken',
            r'metric Broken .* ModuleNotFoundError: .*no_such_module',
        ),
        ('Missing', 'metric Missing cannot be imported: AttributeError'),
        ('Unfinished', 'metric Unfinished lacks the methods: instances'),
        ('Odd', r"metric Odd has suits = {'thesis'}, expected"),
        ('Silent', 'metric Silent lacks a description'),
        ('Demanding', 'metric Demanding cannot be created without arguments'),
        ('function', 'metric function is <function .* subclass of Metric'),
    ],
)
def test_unusable_metric_is_named_with_the_reason(guests, name, message):
    with pytest.raises(exception.PluginError, match=message) as caught:
        plugins.load_metric(name)
    assert type(caught.value) is exception.PluginError


def test_metric_that_calls_itself_a_policy_is_refused(guests):
    with pytest.raises(exception.PluginError, match='subclass of Policy'):
        plugins.load_policy('Good')


def test_unusable_metrics_hide_no_others(guests):
    got = plugins.describe_metrics()
    assert set(OURS) < set(got)
    assert got['Good'] == 'A guest.'
    assert got['Broken'].startswith('unusable: metric Broken cannot be')


SUITS = {
    'DominantShareMetric': ['feedback', 'foresight'],
    'GreedinessMetric': ['proportional', 'thesis'],
    'SpendingRate': ['proportional', 'thesis'],
}


@pytest.mark.parametrize('metric', OURS)
def test_pairs_with_which_users_are_worse_off_are_named(metric):
    policies = plugins.policy_names()
    said = {policy: plugins.warning(metric, policy) for policy in policies}
    quiet = [policy for policy, text in said.items() if not text]
    assert quiet == SUITS.get(metric, list(policies))


def test_an_unloadable_plugin_is_not_warned_of():
    assert plugins.warning('Nonsense', 'foresight') == ''


def test_name_that_two_distributions_claim_is_refused(guests):
    install(
        guests,
        'other',
        '[nova_fairness.metrics]\nGood = guest_metrics:Silent\n',
    )
    with pytest.raises(
        exception.PluginError, match='Good is installed more than once'
    ):
        plugins.load_metric('Good')
