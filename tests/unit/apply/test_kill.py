# SPDX-License-Identifier: Apache-2.0


"""Whatever moment the agent is killed at, all controls can be restored."""

import functools
import shutil

import pytest

from nova_fairness.apply import applier as appliers
from nova_fairness.apply import found_values
from nova_fairness.apply.cgroup import files
from tests.fixtures import effort
from tests.unit.apply import fake_host
from tests.unit.apply import killed

BEFORE = {10: 1024, 11: 2048, 12: 3072}
LATE = (13, 512)


class Agent:
    """Lives that an agent may lead on a host of files."""

    def __init__(self, root, monkeypatch):
        self.root = root
        self.monkeypatch = monkeypatch
        self.begin_anew()

    def begin_anew(self):
        """Make a host on which no agent ever ran."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir()
        self.host = fake_host.FakeHost(self.root / 'host')
        self.host.let_helper_see_it(self.monkeypatch)
        self.keys = [self.host.start(*item) for item in BEFORE.items()]

    def start(self):
        found = found_values.FoundValues(self.root / 'state' / 'f', 'boot')
        assert found.load() == ''
        running = functools.partial(files.is_running, str(self.host.proc))
        applier = appliers.Applier([self.host.control()], found, running)
        return applier, found

    def steer(self, applier, keys, value):
        changes = [
            fake_host.change(key, value + place)
            for place, key in enumerate(keys)
        ]
        assert all(item.written for item in applier.apply(changes))

    def whole_life(self):
        applier, found = self.start()
        self.steer(applier, self.keys, 100)
        late = self.host.start(*LATE)
        self.steer(applier, [*self.keys, late], 200)
        applier.restore(self.keys[:1])
        self.stop(applier, found)

    def short_life(self):
        applier, found = self.start()
        self.steer(applier, self.keys, 300)
        self.stop(applier, found)

    def start_and_stop(self):
        self.stop(*self.start())

    def stop(self, applier, found):
        assert all(item.written for item in applier.restore())
        found.close()

    def values(self):
        paths = sorted(self.host.cpu.glob('machine/*/cpu.shares'))
        return [int(path.read_text().split('\n')[0]) for path in paths]


@pytest.fixture
def agent(tmp_path, monkeypatch):
    return Agent(tmp_path / 'node', monkeypatch)


def expected(values):
    return [*BEFORE.values(), LATE[1]][: len(values)]


@pytest.mark.parametrize('next_life', ['start_and_stop', 'short_life'])
def test_killed_at_any_system_call_then_started_and_stopped(agent, next_life):
    steered = 0
    for at in killed.moments(agent.whole_life, agent.begin_anew):
        steered += agent.values() != expected(agent.values())
        assert killed.run(getattr(agent, next_life))
        assert agent.values() == expected(agent.values()), f'killed at {at}'
    # A life that was never killed while it steered would prove nothing.
    assert steered > effort.count_to_try(20, killed.QUICK_STEP)


@pytest.mark.parametrize(
    'at',
    [
        40,
        pytest.param(10, marks=pytest.mark.slow),
        pytest.param(70, marks=pytest.mark.slow),
    ],
)
def test_an_agent_killed_during_its_restore_restores_at_the_next_start(
    agent, at
):
    deaths = 0
    for again in killed.moments(
        agent.short_life, functools.partial(_begin_killed, agent, at)
    ):
        deaths += 1
        assert killed.run(agent.start_and_stop)
        assert agent.values() == expected(agent.values()), again
    assert deaths > effort.count_to_try(20, killed.QUICK_STEP)


def _begin_killed(agent, at):
    agent.begin_anew()
    assert not killed.run(agent.whole_life, at)
