# SPDX-License-Identifier: Apache-2.0

"""Read and write the recording of a run.

A recording is a directory::

    meta.json                   what was run, where, when
    instances.csv               the lab's own readings, about one a second
    events.csv                  each event, with its subject
    offered.csv                 how much CPU each guest wanted from when on
    fio.json                    what fio moved after the run, if it was asked
    agents/<node>/rounds.jsonl  the agent's record, one line a round

Times ``t_s`` are seconds since the load began. A last line that was cut off
is no error, since a run may be ended at any moment; anything else that cannot
be understood is, and the message names file and line.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import csv
import dataclasses
import json
import math
import pathlib
from typing import Any

from fairness_lab.results import tables
from nova_fairness import exception

RECORD_VERSION = 1


def _rounds_by_node(
    folder: pathlib.Path, name: str
) -> Mapping[str, tuple[Mapping[str, Any], ...]]:
    """Read the agents' rounds.

    :param folder: in which each node has a directory.
    :param name: of the file in it.
    :raises LabError: if one cannot be understood.
    """
    return {
        path.parent.name: tuple(_rounds_of_node(path))
        for path in sorted(folder.glob(f'*/{name}'))
    }


def _rounds_of_node(path: pathlib.Path) -> Iterator[Mapping[str, Any]]:
    whole, _, _cut_off = tables.text(path).rpartition('\n')
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            entry = json.loads(line)
        except json.JSONDecodeError as error:
            raise tables.file_error(
                path, number, f'no JSON: {error.msg}'
            ) from None
        if not isinstance(entry, dict) or 'instances' not in entry:
            raise tables.file_error(
                path, number, 'expected a round with its instances'
            )
        if entry.get('version') != RECORD_VERSION:
            raise tables.file_error(
                path,
                number,
                f'expected version {RECORD_VERSION} of the record, '
                f'got {entry.get("version")!r}',
            )
        yield entry


def _fio_results(path: pathlib.Path) -> Mapping[str, Mapping[str, float]]:
    """Read the bytes that fio moved, by VM; empty if fio did not run.

    :raises LabError: if it cannot be understood.
    """
    if not path.is_file():
        return {}
    try:
        found = json.loads(tables.text(path))
        return {
            str(vm): {str(k): float(v) for k, v in values.items()}
            for vm, values in found.items()
        }
    except (ValueError, TypeError, AttributeError) as error:
        raise tables.file_error(
            path, 1, f'expected numbers by VM: {error}'
        ) from None


META = 'meta.json'
INSTANCES = 'instances.csv'
EVENTS = 'events.csv'
OFFERED = 'offered.csv'
AGENTS = 'agents'
ROUNDS = 'rounds.jsonl'

META_FIELDS = (
    'name',
    'scenario',
    'backend',
    'options',
    'monotonic_start_s',
)
"""Fields that ``meta.json`` must have: the scenario's name and its content,
the guests, the options, and the monotonic clock when the load began. It may
have ``wall_start`` (seconds since the epoch), ``version`` and ``machine``."""

OPTION_FIELDS = ('metric', 'policy', 'interval_s', 'duration_s', 'agents')
"""Fields that its ``options`` must have; they may have
``max_weight_ratio``."""

INSTANCE_COLUMNS = (
    't_s',
    'node',
    'vm',
    'user',
    'cpu_s',
    'cpu_shares',
    'work',
    'state',
)
MORE_COLUMNS = (
    'read_bytes',
    'written_bytes',
    'io_weight',
    'sent_bytes',
    'received_bytes',
    'arrived_bytes',
    'memory_bytes',
    'wait_s',
    'wakes',
    'late_us',
    'late_20ms',
)
"""Columns that older recordings lack: what a guest moved, and what of it
arrived at the far end of its node's uplink, cumulative bytes;
its weight of block I/O; memory that it uses, bytes; seconds that its vCPUs
waited for a CPU, cumulative; how often a program of the guest woke, by how
much too late in all, microseconds, and how often by 20 ms or more."""

FIO = 'fio.json'
"""Data that fio moved after the run, if it was asked to; see
:meth:`backend.Backend.fio`.
:meth:`backend.Backend.fio`."""

EVENT_COLUMNS = ('t_s', 'event', 'subject')
OFFER_COLUMNS = ('t_s', 'vm', 'cpu')

RUNNING = 'running'
"""State of a VM whose vCPUs can run; any other word means they cannot."""

MAXIMUM = 'max'
"""Demand for all vCPUs that the VM has."""


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """One row of ``instances.csv``.

    :ivar t_s: when, seconds since the load began.
    :ivar node: where the VM ran.
    :ivar vm: its name in the scenario.
    :ivar user: its owner.
    :ivar cpu_s: cumulative CPU seconds of its cgroup; ``None`` if not read.
    :ivar cpu_shares: what the kernel held, kernel units, or ``None``.
    :ivar work: cumulative units of work that the guest did, or ``None``.
    :ivar state: :data:`RUNNING`, or a word for why it does not run.
    :ivar more: of :data:`MORE_COLUMNS`, those that were read.
    """

    t_s: float
    node: str
    vm: str
    user: str
    cpu_s: float | None
    cpu_shares: int | None = None
    work: float | None = None
    state: str = RUNNING
    more: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def row(self) -> tuple[Any, ...]:
        """Fields in the order of the columns."""
        fixed = [getattr(self, name) for name in INSTANCE_COLUMNS]
        return (*fixed, *(self.more.get(name) for name in MORE_COLUMNS))


@dataclasses.dataclass(frozen=True, slots=True)
class EventRow:
    """One row of ``events.csv``: time, event and its subject."""

    t_s: float
    event: str
    subject: str


@dataclasses.dataclass(frozen=True, slots=True)
class Offer:
    """One row of ``offered.csv``.

    :ivar cpu: demand from ``t_s`` on, CPUs; infinite stands for all vCPUs.
    """

    t_s: float
    vm: str
    cpu: float


@dataclasses.dataclass(frozen=True)
class Recording:
    """All recorded data of one run.

    :ivar meta: content of ``meta.json``.
    :ivar readings: of the lab, in the order of time.
    :ivar events: in the order of time.
    :ivar offers: in the order of time.
    :ivar rounds: the agent's rounds by node, in the order of time.
    :ivar fio: what fio moved after the run, by VM; see :data:`FIO`.
    """

    meta: Mapping[str, Any]
    readings: tuple[Reading, ...]
    events: tuple[EventRow, ...] = ()
    offers: tuple[Offer, ...] = ()
    rounds: Mapping[str, tuple[Mapping[str, Any], ...]] = dataclasses.field(
        default_factory=dict
    )
    fio: Mapping[str, Mapping[str, float]] = dataclasses.field(
        default_factory=dict
    )


def read(directory: pathlib.Path) -> Recording:
    """Read a recording.

    :raises LabError: if a file is missing or cannot be understood; the
        message names file and line.
    """
    if not (directory / META).is_file():
        raise exception.LabError(
            f'{directory} is no recording of nova-fairness-lab: '
            f'it has no {META}'
        )
    return Recording(
        meta=_meta(directory / META),
        readings=_in_json_order(_readings(directory / INSTANCES)),
        events=_in_json_order(_events(directory / EVENTS)),
        offers=_in_json_order(_offers(directory / OFFERED)),
        rounds=_rounds_by_node(directory / AGENTS, ROUNDS),
        fio=_fio_results(directory / FIO),
    )


def write(recording: Recording, directory: pathlib.Path) -> None:
    """Write a recording into a directory, which is made if need be."""
    directory.mkdir(parents=True, exist_ok=True)
    meta = json.dumps(recording.meta, indent=2, sort_keys=True)
    (directory / META).write_text(meta + '\n')
    _write_csv(
        directory / INSTANCES,
        (*INSTANCE_COLUMNS, *MORE_COLUMNS),
        [row.row() for row in recording.readings],
    )
    _write_csv(
        directory / EVENTS,
        EVENT_COLUMNS,
        [dataclasses.astuple(row) for row in recording.events],
    )
    offers = [
        (row.t_s, row.vm, MAXIMUM if math.isinf(row.cpu) else row.cpu)
        for row in recording.offers
    ]
    _write_csv(directory / OFFERED, OFFER_COLUMNS, offers)
    if recording.fio:
        (directory / FIO).write_text(json.dumps(recording.fio))
    for node, rounds in recording.rounds.items():
        folder = directory / AGENTS / node
        folder.mkdir(parents=True, exist_ok=True)
        lines = ''.join(json.dumps(item) + '\n' for item in rounds)
        (folder / ROUNDS).write_text(lines)


def _write_csv(
    path: pathlib.Path, columns: tuple[str, ...], rows: list[tuple[Any, ...]]
) -> None:
    with path.open('w', newline='') as stream:
        writer = csv.writer(stream, lineterminator='\n')
        writer.writerow(columns)
        writer.writerows(rows)


def _in_json_order(rows: Iterator[Any]) -> tuple[Any, ...]:
    return tuple(sorted(rows, key=lambda row: row.t_s))


def _meta(path: pathlib.Path) -> Mapping[str, Any]:
    try:
        meta = json.loads(tables.text(path))
    except json.JSONDecodeError as error:
        raise tables.file_error(
            path, error.lineno, f'no JSON: {error.msg}'
        ) from None
    if not isinstance(meta, dict):
        raise tables.file_error(path, 1, 'expected a JSON object')
    missing = [name for name in META_FIELDS if name not in meta]
    options = meta.get('options')
    given = options if isinstance(options, dict) else {}
    missing += [f'options.{n}' for n in OPTION_FIELDS if n not in given]
    if missing:
        raise exception.LabError(f'{path}: {", ".join(missing)} is missing')
    return meta


def _readings(path: pathlib.Path) -> Iterator[Reading]:
    for line, row in tables.rows(path, INSTANCE_COLUMNS):
        shares = tables.optional_number(path, line, row, 'cpu_shares')
        yield Reading(
            t_s=tables.number(path, line, row, 't_s'),
            node=row['node'],
            vm=row['vm'],
            user=row['user'],
            cpu_s=tables.optional_number(path, line, row, 'cpu_s'),
            cpu_shares=None if shares is None else int(shares),
            work=tables.optional_number(path, line, row, 'work'),
            state=row['state'],
            more={
                name: value
                for name in MORE_COLUMNS
                if name in row
                and (value := tables.optional_number(path, line, row, name))
                is not None
            },
        )


def _events(path: pathlib.Path) -> Iterator[EventRow]:
    for line, row in tables.rows(path, EVENT_COLUMNS):
        t_s = tables.number(path, line, row, 't_s')
        yield EventRow(t_s, row['event'], row['subject'])


def _offers(path: pathlib.Path) -> Iterator[Offer]:
    for line, row in tables.rows(path, OFFER_COLUMNS):
        if row['cpu'] == MAXIMUM:
            cpu = math.inf
        else:
            cpu = tables.number(path, line, row, 'cpu')
        yield Offer(tables.number(path, line, row, 't_s'), row['vm'], cpu)
