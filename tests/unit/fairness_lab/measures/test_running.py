# SPDX-License-Identifier: Apache-2.0


"""Runs of the simulator, and what is written of them."""

import csv
import json

import jsonschema
import numpy as np
import pytest

from fairness_lab.measures import running
from fairness_lab.measures import schema as result_schema
from fairness_lab.node_sim import engine
from fairness_lab.node_sim import references
from fairness_lab.scenario import experiment
from nova_fairness import exception
from tests.fixtures import manual_fields


def contents(directory):
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob('*'))
        if path.is_file()
    }


def run(directory, name='two-nodes', rounds='12', **choice):
    directory.mkdir()
    scenario = experiment.find(name, {'rounds': rounds})
    return running.run(scenario, running.RunOptions(**choice), directory)


def test_the_same_run_writes_the_same_bytes(tmp_path):
    run(tmp_path / 'a', 'lost-reports', detail=True)
    run(tmp_path / 'b', 'lost-reports', detail=True)
    assert contents(tmp_path / 'a') == contents(tmp_path / 'b')
    assert {'result.json', 'users.csv', 'nodes.csv', 'vms.csv'} <= set(
        contents(tmp_path / 'a')
    )


@pytest.mark.parametrize('policy', ['feedback', 'foresight'])
def test_users_of_many_vms_that_want_little_get_their_parts(tmp_path, policy):
    found = run(tmp_path / 'a', 'tiny-vms', '30', policy=policy)['measures']
    assert found['bounded']['worst']['settled'] < 0.03
    assert found['rounds_to_within_5_percent'] <= 3
    found = run(tmp_path / 'b', 'tiny-vms', '5', policy='none')['measures']
    assert found['bounded']['worst']['settled'] > 0.4


@pytest.mark.parametrize(
    'policy', ['feedback', 'foresight', 'thesis', 'none', 'LEON']
)
def test_a_result_is_as_its_schema_says(tmp_path, policy):
    result = run(tmp_path / 'a', policy=policy)
    schema = result_schema.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(result, schema)
    assert json.loads((tmp_path / 'a' / 'result.json').read_text()) == result
    assert set(result) == set(schema['properties'])


def described(schema, path=''):
    """Every property of a schema, with its path."""
    for name, part in schema.get('properties', {}).items():
        yield f'{path}{name}', part
        yield from described(part, f'{path}{name}.')


def test_every_field_is_described_where_people_look():
    text = manual_fields.page_with_schemas('sim-result.rst')
    for name, part in described(result_schema.schema()):
        assert part.get('description') or '$ref' in part or 'measures' in name
        assert f'``{name}``' in text, name


def test_columns_of_result_tables_add_up(tmp_path):
    run(tmp_path / 'a', detail=True)
    tables = {}
    for kind in ('users', 'nodes', 'vms'):
        with (tmp_path / 'a' / f'{kind}.csv').open(newline='') as file:
            tables[kind] = list(csv.DictReader(file))
    assert len(tables['users']) == 12 * 3
    assert len(tables['nodes']) == 12 * 2
    assert len(tables['vms']) == 12 * 4
    for number in range(12):
        sums = [
            sum(
                float(row['cpu_time.received'])
                for row in rows
                if row['round'] == str(number)
            )
            for rows in tables.values()
        ]
        assert np.ptp(sums) < 1e-3


def received(policy):
    scenario = experiment.find('heterogeneous', {'rounds': '1'})
    made = running.setup(scenario, running.RunOptions(policy=policy))
    (moment,) = engine.simulate(scenario.cloud, made)
    return moment.received


def test_references_differ_from_each_other():
    found = [received(name) for name in references.names()]
    for number, one in enumerate(found):
        for other in found[:number]:
            scale = other.max(axis=0).clip(1.0)
            assert (np.abs(one - other) / scale).max() > 0.01


def test_without_agents_it_matters_how_many_vcpus_a_vm_has(tmp_path):
    users = run(tmp_path / 'a', 'crowd', policy='none')['users']
    equal = run(tmp_path / 'b', 'crowd', policy='equal-vms')['users']
    parts = [
        found['loner']['received']['cpu_time'] / 2000
        for found in (users, equal)
    ]
    assert parts == pytest.approx([2 / 32, 1 / 31])


WRONG = {
    'a metric': ({'metric': 'Nothing'}, 'installed: AssetFairnessMetric'),
    'a policy': ({'policy': 'LEO'}, 'or a reference: '),
    'a share': ({'share': 'gpu'}, 'gpu'),
    'a parameter': (
        {'policy': 'thesis', 'parameters': {'gain': 1.0}},
        'policy thesis has no parameter gain: it has',
    ),
}


@pytest.mark.parametrize(('choice', 'expected'), WRONG.values(), ids=WRONG)
def test_an_unknown_metric_or_policy_is_named(tmp_path, choice, expected):
    with pytest.raises(exception.FairnessError) as caught:
        run(tmp_path / 'a', **choice)
    assert expected in str(caught.value)
