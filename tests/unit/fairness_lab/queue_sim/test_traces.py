# SPDX-License-Identifier: Apache-2.0

"""Requests of a trace."""

import contextlib
import math
import re
import sqlite3

import pytest

from fairness_lab.queue_sim import reader
from fairness_lab.queue_sim import traces
from fairness_lab.queue_sim import workload
from nova_fairness import exception

LARGEST = workload.Size(16, 65536)

TABLE = """\
asked_s,project,user,vcpus,memory_gib,lifetime_s,servers,deleted_s
20,b,u,2,4,60,,
10,a,v,1,0.5,30.5,3,50
10,b,v,2,4,60,1,
"""

# Fields: job, submit, wait, run time, processors, CPU time, used memory,
# requested processors, time and memory, status, user, group, ...
JOBS = """\
; UnixStartTime: 0
; MaxProcs: 64

1 0  -1 100  8 -1 -1       8 200 -1      1 5 2 -1 -1 -1 -1 -1
2 50 -1 300 40 -1 -1      -1 200 -1      1 6 2 -1 -1 -1 -1 -1 ; a comment
3 60 -1  -1 -1 -1 -1       4 200 -1      5 5 1 -1 -1 -1 -1 -1
4 40 -1  10  3 -1 1048576  2 200 2097152 1 7 1 -1 -1 -1 -1 -1
"""


def read(tmp_path, text, name='trace.csv', shares=()):
    path = tmp_path / name
    path.write_text(text)
    return traces.read(traces.Trace(path, dict(shares), 4.0), LARGEST)


def test_a_trace_table_is_read(tmp_path):
    owners, stream = read(tmp_path, TABLE, shares={'b': 3})
    assert owners.projects == ('a', 'b')
    assert owners.shares == (1, 3)
    assert owners.users == ('v', 'u', 'v')
    assert owners.project == (0, 1, 1)
    assert stream.asked_s.tolist() == [10, 10, 20]
    assert stream.user.tolist() == [0, 2, 1]
    assert stream.lifetime_s.tolist() == [30.5, 60, 60]
    assert stream.deleted_s.tolist() == [50, math.inf, math.inf]
    assert [stream.sizes[n] for n in stream.size] == [
        workload.Size(1, 512, 3),
        workload.Size(2, 4096),
        workload.Size(2, 4096),
    ]


def test_jobs_of_a_batch_trace_are_read(tmp_path):
    owners, stream = read(tmp_path, JOBS, 'trace.swf')
    assert owners.projects == ('group-1', 'group-2')
    assert owners.users == ('user-7', 'user-5', 'user-6')
    assert stream.asked_s.tolist() == [0, 40, 50]
    assert stream.lifetime_s.tolist() == [100, 10, 300]
    assert [stream.sizes[n] for n in stream.size] == [
        workload.Size(8, 8 * 4096),
        # 2 GiB of each processor.
        workload.Size(2, 4096),
        # 40 processors on hosts of 16.
        workload.Size(10, 10 * 4096, 4),
    ]


def written(tmp_path, more):
    """A scenario whose trace has the jobs, and more keys."""
    (tmp_path / 'jobs.swf').write_text(JOBS)
    scenario = tmp_path / 'mine.yaml'
    scenario.write_text(
        'description: a test\n'
        'days: 1\n'
        'hosts: {count: 2, vcpus: 64, memory_gib: 512}\n'
        f'trace: {{file: jobs.swf, {more}}}\n'
    )
    return scenario


def test_requested_times_of_jobs_are_limits(tmp_path):
    _, stream = read(tmp_path, JOBS, 'trace.swf')
    assert [stream.time_limit_s(n) for n in range(3)] == [200, 200, 300]


def test_limits_of_a_trace_can_be_left_out(tmp_path):
    scenario = written(tmp_path, 'time_limits: false')
    stream = reader.find(str(scenario)).stream
    assert [stream.time_limit_s(n) for n in range(3)] == [None] * 3


def test_servers_of_a_table_end_at_their_limit(tmp_path):
    table = (
        'asked_s,project,user,vcpus,memory_gib,lifetime_s,limit_s\n'
        '0,a,v,1,1,100,60\n'
        '0,a,v,1,1,100,200\n'
        '0,a,v,1,1,100,\n'
    )
    _, stream = read(tmp_path, table)
    assert stream.lifetime_s.tolist() == [60, 100, 100]
    assert [stream.time_limit_s(n) for n in range(3)] == [60, 200, None]


def test_a_scenario_can_name_a_trace(tmp_path):
    scenario = written(tmp_path, 'shares: {group-1: 2}')
    cloud = reader.find(str(scenario))
    assert cloud.owners.shares == (2, 1)
    # As large as a host at most.
    assert workload.Size(40, 40 * 4096) in cloud.stream.sizes
    with pytest.raises(exception.BadScenario, match='unknown key projects'):
        reader.find(str(scenario), {'projects': '[]'})


BROKEN = {
    'a column is missing': (
        'asked_s,project,user,vcpus,memory_gib\n',
        'line 1: the header lacks lifetime_s',
    ),
    'an unknown column': (
        TABLE.replace('servers', 'flavor'),
        "line 1: the header has 'flavor'",
    ),
    'too many values': (TABLE + '1,a,v,1,1,1,1,1,1\n', 'line 5'),
    'no number': (
        TABLE.replace('30.5', 'long'),
        "line 3, column lifetime_s: expected a number, at least 0, got 'long'",
    ),
    'no lifetime': (TABLE.replace('30.5', '0'), 'line 3, column lifetime_s'),
    'an endless lifetime': (
        TABLE.replace('30.5', 'max'),
        'line 3, column lifetime_s',
    ),
    'a negative time': (TABLE.replace('20,', '-1,'), 'line 2, column asked_s'),
    'half a VCPU': (
        TABLE.replace('v,1,', 'v,1.5,'),
        'line 3, column vcpus: expected a whole number from 1',
    ),
    'no memory': (TABLE.replace('0.5', '0'), 'line 3, column memory_gib'),
    'no servers': (TABLE.replace(',3,', ',0,'), 'line 3, column servers'),
    'no time at all': (
        TABLE.replace('deleted_s', 'limit_s').replace('3,50', '3,0'),
        'line 3, column limit_s: expected more than 0',
    ),
    'no project': (TABLE.replace('10,a', '10,'), 'line 3, column project'),
    'no rows': (TABLE.partition('\n')[0], 'expected at least one request'),
}


@pytest.mark.parametrize(('text', 'expected'), BROKEN.values(), ids=BROKEN)
def test_an_invalid_trace_table_is_refused(tmp_path, text, expected):
    with pytest.raises(exception.BadTrace) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / 'trace.csv'))
    assert expected in str(caught.value)


BROKEN_JOBS = {
    'a field is missing': (
        ('2 50 -1', '2 50'),
        "line 5, column 18: expected 18 fields, got '17 fields'",
    ),
    'a field too much': (
        ('1 0  -1', '1 0 0 -1'),
        "line 4, column 19: expected 18 fields, got '19 fields'",
    ),
    'no number': (
        (' 300 40', ' long 40'),
        "line 5, column 4 (run time): expected a number, got 'long'",
    ),
    'a time before the begin': (
        ('4 40', '4 -40'),
        'line 7, column 2 (submit time)',
    ),
    'no processors': (
        (' 300 40', ' 300 -2'),
        'line 5, column 5 (allocated processors)',
    ),
    'too many processors': (
        ('-1 -1       8', '-1 -1 9999999'),
        'line 4, column 8 (requested processors)',
    ),
}


@pytest.mark.parametrize(
    ('change', 'expected'), BROKEN_JOBS.values(), ids=BROKEN_JOBS
)
def test_broken_jobs_are_refused(tmp_path, change, expected):
    assert change[0] in JOBS
    with pytest.raises(exception.BadTrace) as caught:
        read(tmp_path, JOBS.replace(*change), 'trace.swf')
    assert str(caught.value).startswith(str(tmp_path / 'trace.swf'))
    assert expected in str(caught.value)


def test_a_share_without_a_user_is_refused(tmp_path):
    with pytest.raises(exception.BadTrace, match='no project c, which has'):
        read(tmp_path, TABLE, shares={'c': 1})


@pytest.mark.parametrize('name', ['x.swf', 'x.csv'])
def test_a_missing_trace_file_is_named(tmp_path, name):
    with pytest.raises(exception.BadTrace, match='cannot be read'):
        traces.read(traces.Trace(tmp_path / name, {}, 4.0), LARGEST)


# vmId, tenantId, vmTypeId, priority, starttime, endtime (days)
VMS = (
    (1, 7, 1, 0, -2.0, 0.5),
    (2, 7, 2, 1, 0.25, 0.75),
    (3, 8, 2, 0, 1.0, None),
    (4, 8, 1, 0, -3.0, -1.0),
)
# id, vmTypeId, machineId, core, memory, hdd, ssd, nic
KINDS = (
    (1, 1, 2, 0.5, 0.5, 0, 0.1, 0.1),
    (2, 1, 1, 0.25, 0.125, None, 0.1, 0.1),
    (3, 2, 1, 0.03, 1.0, None, 0.1, 0.1),
)


def packing(path, vms=VMS, kinds=KINDS):
    """A file with the schema of Azure's trace for packing."""
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute(
            'CREATE TABLE vm (vmId, tenantId, vmTypeId, priority, starttime,'
            ' endtime)'
        )
        file.execute(
            'CREATE TABLE vmType (id, vmTypeId, machineId, core, memory, hdd,'
            ' ssd, nic)'
        )
        file.executemany('INSERT INTO vm VALUES (?, ?, ?, ?, ?, ?)', vms)
        file.executemany(
            'INSERT INTO vmType VALUES (?, ?, ?, ?, ?, ?, ?, ?)', kinds
        )
    return path


def test_vms_of_azure_need_parts_of_the_largest_host(tmp_path):
    path = packing(tmp_path / 'packing.sqlite')
    trace = traces.Trace(path, {'tenant-8': 2.0}, 4.0)
    owners, stream = traces.read(trace, LARGEST)
    assert owners.projects == owners.users == ('tenant-7', 'tenant-8')
    assert owners.shares == (1, 2)
    assert stream.asked_s.tolist() == [0, 21600, 86400]
    # Alive at the begin, and longer than anybody looked.
    assert stream.lifetime_s.tolist() == [43200, 43200, 89 * 86400]
    assert stream.is_preemptible.tolist() == [False, True, False]
    assert [stream.sizes[n] for n in stream.size] == [
        workload.Size(4, 8192),
        workload.Size(1, 65536),
        workload.Size(1, 65536),
    ]


@pytest.mark.parametrize(
    ('vms', 'kinds', 'message'),
    [
        (
            [*VMS, (5, 7, 3, 0, 1.0, 2.0)],
            KINDS,
            'column vmTypeId: expected a type that vmType has with core',
        ),
        (
            [(1, 7, 1, 2, 1.0, 2.0)],
            KINDS,
            'line 1, column priority: expected 0 or 1, got 2',
        ),
        (
            [(1, 7, 1, 0, 'soon', 2.0)],
            KINDS,
            "column starttime: expected a number, at least -inf, got 'soon'",
        ),
        (
            [(1, 7, 1, 0, None, 2.0)],
            KINDS,
            'column starttime: expected a number of days, got None',
        ),
        (
            [(1, 7, 1, 0, 1.0, 0.5)],
            KINDS,
            'column endtime: expected at least 1, got 0.5',
        ),
        (
            [(1, None, 1, 0, 1.0, 2.0)],
            KINDS,
            'column tenantId: expected a name, got None',
        ),
        (
            [(1, 7, 1, 0, 1.0, 2.0)],
            [(1, 1, 1, 0.5, 1.5, 0, 0, 0)],
            'expected a part of a machine, from 0 to 1, got 1.5',
        ),
        ([], KINDS, 'expected at least one request'),
    ],
)
def test_the_fault_of_a_trace_of_azure_is_named(tmp_path, vms, kinds, message):
    path = packing(tmp_path / 'packing.sqlite', vms, kinds)
    with pytest.raises(exception.BadTrace, match=re.escape(message)) as error:
        traces.read(traces.Trace(path, {}, 4.0), LARGEST)
    assert str(path) in str(error.value)


def test_a_file_that_is_no_trace_of_azure_is_refused(tmp_path):
    path = tmp_path / 'packing.sqlite'
    trace = traces.Trace(path, {}, 4.0)
    with pytest.raises(exception.BadTrace, match='cannot be read: unable'):
        traces.read(trace, LARGEST)
    path.write_text('not a database, but a text that is long enough')
    with pytest.raises(exception.BadTrace, match='cannot be read: file is'):
        traces.read(trace, LARGEST)
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute('CREATE TABLE vm (vmId, tenantId, vmTypeId, priority)')
    with pytest.raises(
        exception.BadTrace, match='table vm lacks starttime, endtime'
    ):
        traces.read(trace, LARGEST)


def swf(tmp_path, *jobs):
    """Sizes of jobs: number, processors, run time and status of each."""
    lines = [
        f'{number} {n} 0 {run} {processors} -1 -1 {processors} 100 -1'
        f' {status} 1 1 -1 -1 -1 -1 -1\n'
        for n, (number, processors, run, status) in enumerate(jobs)
    ]
    _, stream = read(tmp_path, ''.join(lines), 'jobs.swf')
    return [
        (stream.sizes[n].vcpus, stream.sizes[n].servers, run)
        for n, run in zip(stream.size, stream.lifetime_s, strict=True)
    ]


def test_parts_of_a_job_are_not_counted_beside_the_whole(tmp_path):
    jobs = [(1, 4, 90, 1), (1, 4, 30, 2), (1, 4, 60, 3), (2, 4, 5, 1)]
    assert swf(tmp_path, *jobs) == [(4, 1, 90.0), (4, 1, 5.0)]
    # A file without the line of the whole has parts alone.
    assert swf(tmp_path, (3, 4, 30, 2), (3, 4, 60, 4)) == [
        (4, 1, 30.0),
        (4, 1, 60.0),
    ]


@pytest.mark.parametrize('processors', [0, -1])
def test_a_job_without_processors_is_left_out(tmp_path, processors):
    jobs = [(1, processors, 90, 5), (2, 4, 5, 1)]
    assert swf(tmp_path, *jobs) == [(4, 1, 5.0)]


@pytest.mark.parametrize('processors', range(1, 70))
def test_a_job_asks_for_exactly_its_processors(tmp_path, processors):
    [(vcpus, servers, _)] = swf(tmp_path, (1, processors, 9, 1))
    assert vcpus * servers == processors
    assert vcpus <= LARGEST.vcpus
