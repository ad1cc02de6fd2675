# SPDX-License-Identifier: Apache-2.0


"""Traces."""

import textwrap

import numpy as np
import pyarrow as pa
from pyarrow import parquet
import pytest

from fairness_lab.scenario import cloud as cloud_module
from fairness_lab.scenario import experiment
from fairness_lab.scenario import values
from nova_fairness import exception
from tests.unit.fairness_lab.node_sim import build

SCENARIO = """\
description: a test
rounds: 10
nodes:
  n1: {cpus: 4}
  n2: {cpus: 4}
trace: trace.csv
"""

TRACE = """\
time_s,vm,user,node,vcpus,vm_memory_mib,cpu,disk_read_mib_s
0,a,alice,n1,2,512,max,
0,b,bob,n2,,,0.5,3
15,a,alice,n2,,,1,
40,b,bob,,,,,
"""


def read(tmp_path, trace=TRACE, scenario=SCENARIO):
    (tmp_path / 'trace.csv').write_text(trace)
    path = tmp_path / 'mine.yaml'
    path.write_text(scenario)
    return experiment.read(path).cloud


def test_a_trace_is_read(tmp_path):
    cloud = read(tmp_path)
    assert cloud.vms == ('a', 'b')
    assert cloud.users == ('alice', 'bob')
    assert cloud.vcpus.tolist() == [2, 1]
    assert cloud.memory_bytes[0] == 512 * values.MIB
    changes = cloud.changes
    assert changes.round.tolist() == [0, 0, 2, 4]
    assert changes.vm.tolist() == [0, 1, 0, 1]
    assert changes.node.tolist() == [0, 1, 1, cloud_module.ABSENT]
    assert changes.demand[:, build.CPU].tolist() == [np.inf, 0.5, 1, 0]
    assert changes.demand[1, build.READ] == 3 * values.MIB


def test_a_parquet_trace_is_read_like_csv(tmp_path):
    cloud = read(tmp_path)
    table = pa.table(
        {
            'time_s': [0.0, 0.0, 15.0, 40.0],
            'vm': ['a', 'b', 'a', 'b'],
            'user': ['alice', 'bob', 'alice', 'bob'],
            'node': ['n1', 'n2', 'n2', None],
            'vcpus': [2, None, None, None],
            'vm_memory_mib': [512.0, None, None, None],
            'cpu': [float('inf'), 0.5, 1.0, None],
            'disk_read_mib_s': [None, 3.0, None, None],
        }
    )
    parquet.write_table(table, tmp_path / 'trace.parquet')
    other = read(
        tmp_path, scenario=SCENARIO.replace('trace.csv', 'trace.parquet')
    )
    for name in ('round', 'vm', 'node', 'demand'):
        np.testing.assert_array_equal(
            getattr(cloud.changes, name), getattr(other.changes, name)
        )


HEADER = 'time_s,vm,user,node,cpu\n'

WRONG = {
    'nothing': ('', ', line 1: the header lacks time_s, vm, user, node'),
    'no rows': (HEADER, ': expected at least one row'),
    'a column that is missing': (
        'time_s,vm,user,cpu\n',
        ', line 1: the header lacks node; expected time_s, vm, user, node',
    ),
    'a column that is not known': (
        'time_s,vm,user,node,gpu\n',
        ", line 1: the header has 'gpu'; expected",
    ),
    'no time': (
        HEADER + 'soon,a,u,n1,1\n',
        ", line 2, column time_s: expected a number, at least 0, got 'soon'",
    ),
    'no name': (
        HEADER + '0,,u,n1,1\n',
        ", line 2, column vm: expected a name, got ''",
    ),
    'a node that is not there': (
        HEADER + '0,a,u,n1,1\n5,a,u,n3,1\n',
        ", line 3, column node: expected a node, such as n1, n2, got 'n3'",
    ),
    'less than nothing': (
        HEADER + '0,a,u,n1,-1\n',
        ", line 2, column cpu: expected a number, at least 0, got '-1'",
    ),
    'not a number': (
        HEADER + '0,a,u,n1,nan\n',
        ", line 2, column cpu: expected a number, at least 0, got 'nan'",
    ),
    'half a vCPU': (
        'time_s,vm,user,node,vcpus\n0,a,u,n1,1.5\n',
        ", line 2, column vcpus: expected a whole number, at least 1",
    ),
    'too many fields': (
        HEADER + '0,a,u,n1,1,7\n',
        ", line 2, column after the last: expected nothing, got ['7']",
    ),
    'too few fields': (
        HEADER + '0,a\n',
        ', line 2, column user: expected a name, got None',
    ),
}


@pytest.mark.parametrize(('trace', 'expected'), WRONG.values(), ids=WRONG)
def test_the_fault_of_a_trace_is_told_with_its_place(
    tmp_path, trace, expected
):
    with pytest.raises(exception.BadTrace) as caught:
        read(tmp_path, trace)
    found = str(caught.value).removeprefix(str(tmp_path / 'trace.csv'))
    assert found.startswith(expected)


def test_an_unnamed_user_is_refused(tmp_path):
    with pytest.raises(exception.BadTrace, match='expected a user out of eve'):
        read(tmp_path, scenario=SCENARIO + 'users: {eve: {}}\n')


def test_a_missing_trace_is_named(tmp_path):
    path = tmp_path / 'mine.yaml'
    path.write_text(SCENARIO)
    with pytest.raises(exception.BadTrace, match=r'trace\.csv cannot be read'):
        experiment.read(path)


def test_a_scenario_with_vms_and_a_trace_is_refused(tmp_path):
    text = textwrap.dedent(SCENARIO) + 'vms: {a: {user: u}}\n'
    with pytest.raises(exception.BadScenario, match='beside "trace"'):
        read(tmp_path, scenario=text)
