# SPDX-License-Identifier: Apache-2.0

"""Requests of a cloud become a trace that the simulator reads."""

import csv
import dataclasses
import json
import types

import pytest

from fairness_lab.cmd import sim
from fairness_lab.queue_sim import reader
from nova_fairness.cluster.store import sealing
from nova_fairness.cluster.store import store as store_module
from nova_fairness.cmd import cluster
from nova_fairness.cmd import exported_requests
from nova_fairness.model import reason
from nova_fairness.model import request
from tests.fixtures import small_cloud
from tests.fixtures import small_store
from tests.fixtures import store_contract

E = request.Event
WHY = reason.why(reason.Reason.NOT_PLANNED)
STEPS = (E.RESERVE, E.SEND, E.SENT, E.START, E.END)
BEGIN = 1_000_000.0


def ask(name, at, user='ann', **more):
    more = {'vcpu': 2, 'memory': 4096, 'project': 'physics', **more}
    asked = small_cloud.waiting_request(name, at=BEGIN + at, **more)
    return dataclasses.replace(asked, user=user, flavor='m')


@pytest.fixture
def given(tmp_path):
    """Arguments of the command, for a store with requests of all kinds."""
    keys, path = tmp_path / 'keys', tmp_path / 'store.sqlite'
    sealing.add_key(keys)
    small_store.fill(path)
    store = store_module.open_store(f'sqlite:///{path}', keys)
    epoch = store.take_over(0, 'one', 1.0)

    def go(asked, *events):
        store.store_message(store_contract.make_cast(f'c-{asked.uuid}', BEGIN))
        assert store.add_request(asked, f'c-{asked.uuid}', asked.asked_at)
        for event, seconds in events:
            asked = store.step(asked, event, epoch, WHY, BEGIN + seconds)

    def ran(start, *end):
        return zip(STEPS, (start, start, start, start, *end), strict=False)

    go(ask('a', 0, time_limit_s=600.0), *ran(10, 310))
    go(ask('b', 5, 'bob', project='biology', count=2), *ran(20, 120))
    go(ask('c', 6), *ran(30))
    go(ask('deleted', 7), (E.CANCEL, 60))
    go(ask('waits', 8))
    go(ask('failed', 9), (E.FAIL, 60))
    go(ask('small', 9, band=request.Band.PREEMPTIBLE), *ran(30, 40))
    conf = tmp_path / 'service.conf'
    conf.write_text(
        f'[fairness_cluster]\ndatabase = sqlite:///{path}\nkey_file = {keys}\n'
    )
    return ['--config-file', str(conf)]


def exported(given, tmp_path, *more):
    """Rows of the file."""
    path = tmp_path / 'requests.csv'
    assert cluster.main([*given, '--to', str(path), *more, EXPORT]) == 0
    return list(csv.DictReader(path.read_text().splitlines()))


EXPORT = 'export-requests'


@pytest.fixture
def now(monkeypatch):
    clock = types.SimpleNamespace(time=lambda: BEGIN + 1030)
    monkeypatch.setattr(exported_requests, 'time', clock)


def test_a_row_contains_the_end_of_a_request(given, tmp_path, now, capsys):
    rows = exported(given, tmp_path)
    assert '5 rows' in capsys.readouterr().out
    first, second, runs, deleted, waits = rows
    assert first == {
        'asked_s': '0',
        'project': 'physics',
        'user': 'ann',
        'vcpus': '2',
        'memory_gib': '4',
        'lifetime_s': '300',
        'servers': '1',
        'deleted_s': '',
        'limit_s': '600',
    }
    assert (second['project'], second['servers']) == ('biology', '2')
    assert second['lifetime_s'] == '100'
    # It runs still.
    assert runs['lifetime_s'] == '1000'
    assert (deleted['asked_s'], deleted['deleted_s']) == ('7', '60')
    assert deleted['lifetime_s'] == waits['lifetime_s'] == '300'
    assert waits['deleted_s'] == ''


def test_names_are_replaced_on_request(given, tmp_path, now):
    rows = exported(given, tmp_path, '--anonymous')
    assert [(row['project'], row['user']) for row in rows][:3] == [
        ('project-1', 'user-1'),
        ('project-2', 'user-2'),
        ('project-1', 'user-1'),
    ]
    text = (tmp_path / 'requests.csv').read_text()
    for name in ('physics', 'biology', 'ann', 'bob'):
        assert name not in text


def test_the_simulator_reads_and_runs_the_file(given, tmp_path, now, capsys):
    exported(given, tmp_path)
    scenario = tmp_path / 'past.yaml'
    scenario.write_text(
        'description: What was asked of a cloud.\n'
        'days: 0.02\n'
        'hosts: {count: 2, vcpus: 4, memory_gib: 8}\n'
        'trace: {file: requests.csv, shares: {physics: 2}}\n'
    )
    cloud = reader.find(str(scenario))
    assert cloud.stream.asked_s.tolist() == [0, 5, 6, 7, 8]
    assert cloud.stream.time_limit_s(0) == 600
    assert cloud.owners.projects == ('biology', 'physics')
    assert cloud.owners.shares == (1, 2)
    out = tmp_path / 'result'
    arguments = ['cluster', 'run', str(scenario), '--order', 'fair_tree']
    assert sim.main([*arguments, '--out', str(out)]) == 0
    result = json.loads((out / 'result.json').read_text())
    assert result['waiting']['requests'] == 5


def test_a_file_must_be_named_and_writable(given, tmp_path, capsys):
    assert cluster.main([*given, EXPORT]) == 2
    assert '--to FILE says where' in capsys.readouterr().err
    path = str(tmp_path / 'none' / 'requests.csv')
    assert cluster.main([*given, '--to', path, EXPORT]) == 2
    assert (
        f'{path}: cannot be written: No such file' in capsys.readouterr().err
    )


def test_a_cloud_without_requests_has_a_table_without_rows():
    assert exported_requests.table([], is_anonymous=False) == []
