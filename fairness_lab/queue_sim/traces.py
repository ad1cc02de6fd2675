# SPDX-License-Identifier: Apache-2.0

"""Requests of a trace: CSV, Parquet, SWF, or Azure's for packing.

A row of a table is a request. A line of the Standard Workload Format
(Feitelson, Parallel Workloads Archive) is a job of a batch system: it becomes
a request of servers as large as the largest host at most. A VM of Azure's
trace for packing (Hadary et al., OSDI 2020) needs parts of a machine, which
is the largest host here. A file is taken whole or not at all.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import math
import pathlib
import sqlite3
import types
from typing import Any

import numpy as np

from fairness_lab.queue_sim import workload
from fairness_lab.scenario import trace_rows
from nova_fairness import exception

NEEDED = ('asked_s', 'project', 'user', 'vcpus', 'memory_gib', 'lifetime_s')
OTHERS = ('servers', 'deleted_s', 'limit_s')

SWF = '.swf'
SWF_FIELDS = (
    'job number',
    'submit time',
    'wait time',
    'run time',
    'allocated processors',
    'average CPU time',
    'used memory',
    'requested processors',
    'requested time',
    'requested memory',
    'status',
    'user',
    'group',
    'executable',
    'queue',
    'partition',
    'preceding job',
    'think time',
)
"""The 18 fields of a line; -1 stands for what is not known."""

_PARTS = (2, 3, 4)
"""Of ``status``: a part of a job that was stopped and went on. The standard
has one line for the whole job beside those of its parts."""

PACKING = ('.sqlite', '.db')
PACKING_TABLES: Mapping[str, Sequence[str]] = types.MappingProxyType(
    {
        'vm': (
            'vmId',
            'tenantId',
            'vmTypeId',
            'priority',
            'starttime',
            'endtime',
        ),
        'vmType': ('vmTypeId', 'machineId', 'core', 'memory'),
    }
)
"""Columns that are read, by table."""

PACKING_DAYS = 90.0
"""A VM without an end lived longer than that."""

_VMS = """
SELECT vm.rowid, vm.tenantId, vm.vmTypeId, vm.priority, vm.starttime,
    vm.endtime, kind.core, kind.memory
FROM vm LEFT JOIN (
    SELECT vmTypeId, core, memory, min(machineId) FROM vmType GROUP BY vmTypeId
) kind ON kind.vmTypeId = vm.vmTypeId
ORDER BY vm.rowid
"""
"""The needs of a type are those on the first machine that has it: SQLite takes
the other columns from the row with the least."""

MOST_SERVERS = 10_000
_MOST_AMOUNT = 10**9
_KIB_PER_MIB = 1024


@dataclasses.dataclass(frozen=True)
class Trace:
    """Settings of a scenario's trace.

    :ivar path: of the file.
    :ivar shares: by project; those not named have 1.
    :ivar memory_gib: of each VCPU, if a job does not say, GiB.
    :ivar has_limits: whether the planner knows the time limits of the file.
    """

    path: pathlib.Path
    shares: Mapping[str, float]
    memory_gib: float
    has_limits: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class _TraceRequest:
    """One request."""

    at_s: float
    project: str
    user: str
    size: workload.Size
    lifetime_s: float
    deleted_s: float = math.inf
    is_preemptible: bool = False
    limit_s: float = math.inf


def read(
    trace: Trace, largest: workload.Size
) -> tuple[workload.Owners, workload.Stream]:
    """Read a trace.

    :param largest: what the largest host has: no server of a job has more,
        and VMs of Azure's trace need parts of it.
    :raises BadTrace: with file, line, column and what was expected.
    """
    found = list(_read(trace, largest))
    if not found:
        raise exception.BadTrace(
            f'{trace.path}: expected at least one request'
        )
    found.sort(key=lambda each: each.at_s)
    projects = sorted({each.project for each in found})
    for name in trace.shares:
        if name not in projects:
            some = ', '.join(projects[:10])
            raise exception.BadTrace(
                f'{trace.path} has no project {name}, which has a share;'
                f' it has {some}'
            )
    users = sorted({(each.project, each.user) for each in found})
    owners = workload.Owners(
        tuple(projects),
        tuple(trace.shares.get(name, 1.0) for name in projects),
        tuple(user for _, user in users),
        tuple(projects.index(project) for project, _ in users),
    )
    return owners, _create_stream(found, users, trace.has_limits)


def _read(trace: Trace, largest: workload.Size) -> Iterator[_TraceRequest]:
    if trace.path.suffix == SWF:
        return _read_swf(trace, largest.vcpus)
    if trace.path.suffix in PACKING:
        return _read_azure_packing(trace.path, largest)
    return _read_table(trace.path)


def _create_stream(
    found: list[_TraceRequest], users: list[tuple[str, str]], has_limits: bool
) -> workload.Stream:
    sizes = list(dict.fromkeys(each.size for each in found))
    user = {name: n for n, name in enumerate(users)}
    size = {each: n for n, each in enumerate(sizes)}
    return workload.Stream(
        np.array([each.at_s for each in found]),
        np.array([each.lifetime_s for each in found]),
        np.array([each.deleted_s for each in found]),
        np.array([user[each.project, each.user] for each in found]),
        np.array([size[each.size] for each in found]),
        tuple(sizes),
        preemptible=np.array([each.is_preemptible for each in found]),
        limit_s=np.array(
            [each.limit_s if has_limits else math.inf for each in found]
        ),
    )


def _read_table(path: pathlib.Path) -> Iterator[_TraceRequest]:
    header = trace_rows.Header(NEEDED, OTHERS)
    for place, row in trace_rows.read(path, header):
        memory_gib = _finite_number(place, row, 'memory_gib')
        memory_mib = round(memory_gib * workload.MIB_PER_GIB)
        if not 1 <= memory_mib <= _MOST_AMOUNT:
            raise place.error(
                'memory_gib',
                row['memory_gib'],
                'a number from 1/1024 to 976562',
            )
        size = workload.Size(
            _whole_number(place, row, 'vcpus', _MOST_AMOUNT),
            memory_mib,
            _whole_number(place, row, 'servers', MOST_SERVERS, 1.0),
        )
        lifetime_s = _finite_number(place, row, 'lifetime_s')
        if not lifetime_s:
            raise place.error('lifetime_s', row['lifetime_s'], 'more than 0')
        limit_s = trace_rows.number(place, row, 'limit_s', math.inf)
        if not limit_s:
            raise place.error('limit_s', row['limit_s'], 'more than 0')
        yield _TraceRequest(
            _finite_number(place, row, 'asked_s'),
            trace_rows.text(place, row, 'project'),
            trace_rows.text(place, row, 'user'),
            size,
            min(lifetime_s, limit_s),
            trace_rows.number(place, row, 'deleted_s', math.inf),
            limit_s=limit_s,
        )


def _finite_number(
    place: trace_rows.RowPlace, row: trace_rows.Row, key: str
) -> float:
    number = trace_rows.number(place, row, key, math.nan)
    if not math.isfinite(number):
        raise place.error(key, row[key], 'a number, at least 0')
    return number


def _whole_number(
    place: trace_rows.RowPlace,
    row: trace_rows.Row,
    key: str,
    most: int,
    missing: float = math.nan,
) -> int:
    number = trace_rows.number(place, row, key, missing)
    if not (number.is_integer() and 1 <= number <= most):
        raise place.error(
            key, row.get(key), f'a whole number from 1 to {most}'
        )
    return int(number)


def _read_swf(trace: Trace, most_vcpus: int) -> Iterator[_TraceRequest]:
    for place, job in _jobs_without_parts(trace.path):
        if job['run time'] <= 0:
            continue
        if job['submit time'] < 0:
            raise place.error('2 (submit time)', job['submit time'], '>= 0')
        column = '8 (requested processors)'
        if job['requested processors'] <= 0:
            column = '5 (allocated processors)'
        processors = job[column[3:-1]]
        if processors in (0, -1):
            # It was cancelled before it had any.
            continue
        if not (
            processors.is_integer()
            and 1 <= processors <= most_vcpus * MOST_SERVERS
        ):
            raise place.error(
                column,
                processors,
                f'1 to {most_vcpus * MOST_SERVERS} processors',
            )
        servers = _fewest_equal_servers(int(processors), most_vcpus)
        vcpus = math.ceil(processors / servers)
        memory_mib = max(job['requested memory'], job['used memory'])
        memory_mib = memory_mib / _KIB_PER_MIB
        if memory_mib <= 0:
            memory_mib = trace.memory_gib * workload.MIB_PER_GIB
        memory = min(max(math.ceil(vcpus * memory_mib), 1), _MOST_AMOUNT)
        yield _TraceRequest(
            job['submit time'],
            f'group-{job["group"]:g}',
            f'user-{job["user"]:g}',
            workload.Size(vcpus, memory, servers),
            job['run time'],
            limit_s=_swf_limit_s(job),
        )


def _swf_limit_s(job: Mapping[str, float]) -> float:
    """Some files have jobs that ran longer than they had asked for."""
    if job['requested time'] <= 0:
        return math.inf
    return max(job['requested time'], job['run time'])


def _fewest_equal_servers(processors: int, most_vcpus: int) -> int:
    """The fewest servers of one size that have exactly so many processors.

    A job of more processors than :data:`MOST_SERVERS` that only smaller
    servers divide has the fewest servers of the largest size, and a few
    processors more.
    """
    least = math.ceil(processors / most_vcpus)
    most = min(processors, MOST_SERVERS)
    return next(
        (n for n in range(least, most + 1) if processors % n == 0), least
    )


def _jobs_without_parts(
    path: pathlib.Path,
) -> Iterator[tuple[trace_rows.RowPlace, dict[str, float]]]:
    """Jobs, without the parts of those that have a line for the whole."""
    found = list(_jobs(path))
    whole = {
        job['job number'] for _, job in found if job['status'] not in _PARTS
    }
    for place, job in found:
        if job['status'] not in _PARTS or job['job number'] not in whole:
            yield place, job


def _jobs(
    path: pathlib.Path,
) -> Iterator[tuple[trace_rows.RowPlace, dict[str, float]]]:
    try:
        with path.open(encoding='utf-8', errors='replace') as file:
            yield from _read_job_fields(path, file)
    except OSError as error:
        raise exception.BadTrace(f'{path} cannot be read: {error}') from None


def _read_job_fields(
    path: pathlib.Path, lines: Iterable[str]
) -> Iterator[tuple[trace_rows.RowPlace, dict[str, float]]]:
    """Fields of each job; comments begin with a semicolon."""
    for line, text in enumerate(lines, 1):
        words = text.partition(';')[0].split()
        if not words:
            continue
        place = trace_rows.RowPlace(path, line)
        if len(words) != len(SWF_FIELDS):
            column = f'{min(len(words), len(SWF_FIELDS)) + 1}'
            expected = f'{len(SWF_FIELDS)} fields'
            raise place.error(column, f'{len(words)} fields', expected)
        job = {}
        for n, (name, word) in enumerate(
            zip(SWF_FIELDS, words, strict=True), 1
        ):
            try:
                job[name] = float(word)
            except ValueError:
                job[name] = math.nan
            if not math.isfinite(job[name]):
                raise place.error(f'{n} ({name})', word, 'a number')
        yield place, job


def _read_azure_packing(
    path: pathlib.Path, largest: workload.Size
) -> Iterator[_TraceRequest]:
    """VMs of Azure's trace for packing, those that lived on at its begin."""
    for place, row in _read_vms(path):
        low = row['priority']
        if low not in (0, 1):
            raise place.error('priority', low, '0 or 1')
        begin = _number(place, row, 'starttime')
        end = PACKING_DAYS
        if row['endtime'] is not None:
            end = _number(place, row, 'endtime')
        if end < begin:
            raise place.error('endtime', end, f'at least {begin:g}')
        begin = max(begin, 0.0)
        if end <= begin:
            continue
        tenant = f'tenant-{trace_rows.text(place, row, "tenantId")}'
        yield _TraceRequest(
            begin * workload.DAY_S,
            tenant,
            tenant,
            workload.Size(
                _amount_of_machine(place, row, 'core', largest.vcpus),
                _amount_of_machine(place, row, 'memory', largest.memory_mib),
            ),
            (end - begin) * workload.DAY_S,
            is_preemptible=bool(low),
        )


def _read_vms(
    path: pathlib.Path,
) -> Iterator[tuple[trace_rows.RowPlace, trace_rows.Row]]:
    """Rows of ``vm`` with what their types need."""
    try:
        address = f'{path.absolute().as_uri()}?mode=ro'
        with contextlib.closing(sqlite3.connect(address, uri=True)) as file:
            for table, columns in PACKING_TABLES.items():
                _check_table(path, file, table, columns)
            file.row_factory = sqlite3.Row
            for row in file.execute(_VMS):
                yield trace_rows.RowPlace(path, row['rowid']), dict(row)
    except sqlite3.Error as error:
        raise exception.BadTrace(f'{path} cannot be read: {error}') from None


def _check_table(
    path: pathlib.Path,
    file: sqlite3.Connection,
    table: str,
    columns: Sequence[str],
) -> None:
    there = [row[1] for row in file.execute(f'PRAGMA table_info({table})')]
    missing = [name for name in columns if name not in there]
    if missing:
        raise exception.BadTrace(
            f'{path}: table {table} lacks {", ".join(missing)}'
        )


def _number(
    place: trace_rows.RowPlace, row: Mapping[str, Any], key: str
) -> float:
    found = trace_rows.number(place, row, key, math.nan, -math.inf)
    if not math.isfinite(found):
        raise place.error(key, row[key], 'a number of days')
    return found


def _amount_of_machine(
    place: trace_rows.RowPlace, row: Mapping[str, Any], key: str, whole: int
) -> int:
    """Amount of a part of a machine, at least 1."""
    if row[key] is None:
        raise place.error(
            'vmTypeId', row['vmTypeId'], f'a type that vmType has with {key}'
        )
    part = trace_rows.number(place, row, key, math.nan)
    if not 0 <= part <= 1:
        raise place.error(key, row[key], 'a part of a machine, from 0 to 1')
    # Parts are rounded in the trace: half of 64 may be 32.000001.
    return max(math.ceil(part * whole - 1e-6), 1)
