# SPDX-License-Identifier: Apache-2.0

"""The observer that compares rounds with ideals."""

import json
import pathlib

import jsonschema
import numpy as np
import pytest

from fairness_lab.measures import measures
from fairness_lab.node_sim import model
from fairness_lab.scenario import cloud as cloud_module
from nova_fairness import exception
from nova_fairness.measure.metrics import dominant_share
from nova_fairness.model import resources

R = resources.RESOURCES
SCHEMA = pathlib.Path(measures.__file__).with_name('measures_schema.json')


def cloud(rounds=20, changed=(0,)):
    """Build a node of one CPU with two VMs of user a and one of b."""
    count = len(changed) * 3
    return cloud_module.Cloud(
        name='small',
        description='two against one',
        interval_s=10.0,
        rounds=rounds,
        nodes=('n',),
        cpus=np.ones(1),
        speed=np.ones(1),
        capacity=R.vector(cpu_time=1.0)[np.newaxis],
        users=('a', 'b'),
        user_weight=np.ones(2),
        vms=('v0', 'v1', 'v2'),
        user_of_vm=np.array([0, 0, 1]),
        vcpus=np.ones(3, np.int64),
        memory_bytes=np.full(3, 2.0**27),
        coupled=np.zeros((3, len(R)), bool),
        changes=cloud_module.VmChanges(
            round=np.repeat(changed, 3),
            vm=np.tile(np.arange(3), len(changed)),
            node=np.zeros(count, np.intp),
            demand=np.repeat([R.vector(cpu_time=1.0)], count, axis=0),
        ),
    )


def moment(number, received, changed=None, demand=1.0):
    amounts = np.zeros((3, len(R)))
    amounts[:, R.index('cpu_time')] = received
    wanted = np.zeros((3, len(R)))
    wanted[:, R.index('cpu_time')] = demand
    controls = len(resources.CONTROLS)
    return model.RoundMoment(
        round=number,
        time_s=10.0 * (number + 1),
        changed=number == 0 if changed is None else changed,
        node=np.zeros(3, np.intp),
        demand=wanted,
        received=amounts,
        weights=np.ones((3, controls)),
        shares=np.ones((3, len(R))),
        neutral=np.ones((3, len(R))),
        heaviness=np.zeros(3),
        user_heaviness=np.zeros(2),
        contended=np.ones((1, controls), bool),
        wanting=np.ones((3, controls), bool),
        capacity=R.vector(cpu_time=1.0)[np.newaxis],
        resting=np.zeros(1, bool),
    )


def setup(ratio=20.0):
    return model.Setup(
        metric='DominantShareMetric',
        policy='none',
        metric_plugin=dominant_share.DominantShareMetric(),
        max_weight_ratio=ratio,
    )


def judged(shares, ratio=20.0):
    found = measures.Measures(cloud(len(shares)), setup(ratio))
    for number, received in enumerate(shares):
        found.see(moment(number, received))
    return found.result()


UNFAIR = [1 / 3, 1 / 3, 1 / 3]
FAIR = [0.25, 0.25, 0.5]


def test_the_result_says_when_a_run_became_fair():
    result = judged([UNFAIR] * 4 + [FAIR] * 16)
    assert result['rounds_to_within_5_percent'] == 4
    assert result['not_within_5_percent'] == 0
    assert result['bounded']['worst']['largest'] == pytest.approx(1 / 3)
    assert result['bounded']['worst']['settled'] == pytest.approx(0, abs=1e-4)
    assert result['free']['distance']['largest'] == pytest.approx(1 / 6)
    assert result['jain']['last'] == pytest.approx(1.0)
    assert result['overshoot'] == pytest.approx(0.0, abs=1e-4)


def test_the_result_says_that_a_run_stayed_unfair():
    result = judged([UNFAIR] * 20)
    assert result['rounds_to_within_5_percent'] is None
    assert result['not_within_5_percent'] == 1


def test_bounded_weights_are_compared_with_the_bounded_ideal():
    result = judged([UNFAIR] * 20, ratio=1.0)
    assert result['rounds_to_within_5_percent'] == 0
    assert result['free']['worst']['settled'] == pytest.approx(1 / 3)


def test_a_too_short_period_is_not_judged():
    result = judged([UNFAIR] * 5)
    assert result['stretches'] == 0
    assert result['oscillation'] is None


def test_the_result_follows_its_schema_and_is_json():
    schema = json.loads(SCHEMA.read_text(encoding='utf-8'))
    result = judged([UNFAIR] * 4 + [FAIR] * 16)
    jsonschema.validate(json.loads(json.dumps(result)), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**result, 'more': 1}, schema)


def test_series_have_a_row_for_each_round():
    series = judged([UNFAIR] * 4 + [FAIR] * 16)['series']
    assert len(series['measures']['rows']) == 20
    assert len(series['ideals']['rows']) == 40
    assert len(series['weights']['rows']) == 60
    for table in series.values():
        widths = {len(row) for row in table['rows']}
        assert widths == {len(table['columns'])}


def test_an_unknown_share_is_refused_before_the_run():
    with pytest.raises(exception.UnknownShare, match='gpu'):
        measures.Measures(cloud(), setup(), 'gpu')


def test_an_idle_resource_that_is_wanted_is_counted():
    nothing = np.zeros((3, len(R)), bool)
    place = R.index('cpu_time')
    wasted = measures.idle_while_wanted(moment(0, [0.2, 0.2, 0.2]), nothing)
    assert wasted[place] == pytest.approx(0.4)
    content = measures.idle_while_wanted(
        moment(0, [0.2, 0.2, 0.2], demand=0.2), nothing
    )
    assert content.max() == 0.0


def test_a_vm_that_waits_for_another_resource_wants_no_more_of_this_one():
    given = moment(0, [0.2, 0.2, 0.2])
    disk = R.index('disk_read')
    given.capacity[0, disk] = 1.0
    given.demand[:, disk] = 1.0
    given.received[:, disk] = [0.2, 0.2, 0.6]
    coupled = np.zeros((3, len(R)), bool)
    coupled[:, [R.index('cpu_time'), disk]] = True
    assert measures.idle_while_wanted(given, coupled).max() == 0.0


def test_few_ideals_are_those_of_rounds_spread_over_the_run():
    busy = cloud(20, changed=tuple(range(20)))
    found = measures.Measures(busy, setup(), few=4)
    for number in range(20):
        found.see(moment(number, FAIR, changed=True))
    table = found.result()['series']['measures']
    place = table['columns'].index('worst_bounded')
    known = [row[0] for row in table['rows'] if row[place] is not None]
    assert known == [0, 6, 13, 19]
