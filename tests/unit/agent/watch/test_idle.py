# SPDX-License-Identifier: Apache-2.0

"""An agent watches who does nothing, also over its own restarts."""

import json

import pytest

from nova_fairness.agent.watch import idle
from nova_fairness.measure import idleness
from nova_fairness.observe import status
from tests.unit.agent import fake_host


@pytest.fixture
def host(tmp_path):
    made = fake_host.FakeHost(
        tmp_path, fake_host.vm('a-1', 'ann'), fake_host.vm('b-2', 'bob')
    )
    made.cpu.wants = {'a-1': 0.001, 'b-2': 0.5}
    return made


def idle_s(host, done):
    return {
        uuid: host.cpu.clock_s - since
        for uuid, since in done.idle_since.items()
    }


def test_an_idle_vm_and_its_idle_time_are_known(host):
    done = host.rounds(1000)
    found = idle_s(host, done)
    assert found['a-1'] == pytest.approx(9990, abs=2 * idle.CHECK_INTERVAL_S)
    assert found['b-2'] < idleness.WINDOW_S
    told = status.idle_seconds(done, 0.0)
    assert told.keys() == {'a-1', 'b-2'}
    assert status.idle_seconds(None, 0.0) == {}


def test_only_vms_idle_for_long_enough_are_reported(host):
    done = host.rounds(1000)
    wall = {uuid: -s for uuid, s in idle_s(host, done).items()}
    seen = type(done)(**{**vars(done), 'idle_since': wall})
    assert status.idle_seconds(seen, 5000.0).keys() == {'a-1'}


def test_a_vm_that_waits_for_a_cpu_is_not_idle(host):
    # Two that want everything leave it next to nothing.
    host.inventory.vms += tuple(
        fake_host.vm(f'c-{n}', 'cid') for n in range(3, 9)
    )
    host.cpu.wants['a-1'] = 1.0
    host.best_effort.add('a-1')
    done = host.rounds(1000)
    assert idle_s(host, done)['a-1'] < idleness.WINDOW_S


def restarted(host, path, gap_s):
    """The same node with another agent, some seconds later."""
    path.mkdir()
    (path / 'idle.json').write_text(host.idling._file.path.read_text())
    again = fake_host.FakeHost(path, *host.inventory.vms)
    again.cpu.clock_s = host.cpu.clock_s + gap_s
    again.cpu.wants = host.cpu.wants
    return again


@pytest.mark.repeated
@pytest.mark.parametrize(
    ('gap_s', 'least_s', 'most_s'),
    [(600.0, 10000.0, 11000.0), (4000.0, 0.0, 300.0)],
)
def test_idle_times_survive_a_restart_but_not_a_long_absence(
    host, tmp_path, gap_s, least_s, most_s
):
    host.rounds(1000)
    host.idling.save()
    again = restarted(host, tmp_path / 'again', gap_s)
    found = idle_s(again, again.rounds(20))['a-1']
    assert least_s <= found <= most_s


@pytest.mark.parametrize(
    'text', ['{', '[]', '{"a": 1}', '{"a": {"since": "x"}}']
)
def test_an_unreadable_file_is_reported(tmp_path, caplog, text):
    (tmp_path / 'idle.json').write_text(text)
    host = fake_host.FakeHost(tmp_path, fake_host.vm('a-1', 'ann'))
    assert 'idle.json cannot be read' in caplog.text
    assert 'a-1' in host.rounds(20).idle_since


def test_idle_time_is_forgotten_with_its_vm(host, tmp_path):
    host.rounds(100)
    host.inventory.vms = host.inventory.vms[1:]
    done = host.rounds(500)
    assert done.idle_since.keys() == {'b-2'}
    host.idling.save()
    assert json.loads((tmp_path / 'idle.json').read_text()).keys() == {'b-2'}
