# SPDX-License-Identifier: Apache-2.0

"""A real systemd restarts a service that hangs, and none that waits."""

import pathlib
import re
import sys

import pytest

from fairness_lab.testbed.nodes import processes
from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import schema
from nova_fairness.cluster.store import sealing
from tests.fixtures import booted

pytestmark = [pytest.mark.real, pytest.mark.beside, pytest.mark.timeout(600)]

TREE = pathlib.Path(__file__).resolve().parents[2]
UNIT = TREE / 'etc/systemd/nova-fairness-relay.service'
RELAY = 'nova-fairness-relay'
WATCHED_S = 25
"""Instead of minutes. The relay tries its broker again within 10 s."""

RUN = 'import sys; from nova_fairness.cmd import relay; sys.exit(relay.main())'
CONF = """\
[fairness_cluster]
broker = amqp://guest:guest@127.0.0.1:9//
database = sqlite:///{0}/requests.sqlite
key_file = {0}/keys
relay_prometheus_port = 0
"""


def unit(place, conf):
    """The relay's unit, which runs this tree with another patience."""
    text = re.sub(
        r'^ExecStart=.*$',
        f'ExecStart={sys.executable} -c "{RUN}" --config-file {conf} run\n'
        f'Environment=PYTHONPATH={TREE}',
        UNIT.read_text(),
        flags=re.MULTILINE,
    )
    # The tree may be where neither other users nor private places reach.
    for option in ('User', 'PrivateTmp', 'ProtectHome', 'ProtectSystem'):
        text = re.sub(rf'^{option}=.*$', '', text, flags=re.MULTILINE)
    for option, value in (
        ('WatchdogSec', WATCHED_S),
        ('TimeoutStopSec', 2),
        ('RestartSec', 0.1),
    ):
        text, found = re.subn(
            rf'^{option}=.*$', f'{option}={value}', text, flags=re.MULTILINE
        )
        assert found == 1, option
    (place / f'{RELAY}.service').write_text(text)


@pytest.fixture(scope='module')
def machine():
    with booted.running() as made:
        conf = made.exchange / 'relay.conf'
        conf.write_text(CONF.format(made.exchange))
        engine = database.open_engine(
            f'sqlite:///{made.exchange}/requests.sqlite'
        )
        schema.upgrade_tables(engine)
        engine.dispose()
        sealing.add_key(made.exchange / 'keys')
        unit(made.root / 'etc/systemd/system', conf)
        made.check('systemctl', 'daemon-reload')
        made.check('systemctl', 'start', RELAY)
        yield made


@pytest.mark.slow
def test_a_relay_whose_broker_is_away_is_not_killed(machine):
    pid = machine.show(RELAY, 'MainPID')
    assert pid != '0'
    first = machine.show(RELAY, 'WatchdogTimestampMonotonic')
    # systemd hears of it for longer than it would wait without that.
    assert processes.wait_until(
        lambda: (
            int(machine.show(RELAY, 'WatchdogTimestampMonotonic'))
            > int(first) + 1.5 * WATCHED_S * 1e6
        ),
        booted.PATIENCE_S,
        0.5,
    ), machine.journal(RELAY)
    assert machine.show(RELAY, 'MainPID') == pid
    assert machine.show(RELAY, 'NRestarts') == '0'


def test_a_relay_that_hangs_is_restarted(machine):
    pid = machine.show(RELAY, 'MainPID')
    before = machine.show(RELAY, 'NRestarts')
    machine.check('systemctl', 'kill', '--signal=STOP', RELAY)
    assert processes.wait_until(
        lambda: machine.show(RELAY, 'NRestarts') != before,
        booted.PATIENCE_S,
        0.2,
    ), machine.journal(RELAY)
    assert 'Watchdog timeout' in machine.journal(RELAY)
    assert processes.wait_until(
        lambda: machine.show(RELAY, 'ActiveState') == 'active',
        booted.PATIENCE_S,
        0.2,
    ), machine.journal(RELAY)
    assert machine.show(RELAY, 'MainPID') != pid
    machine.check('systemctl', 'stop', RELAY)
    assert machine.show(RELAY, 'Result') == 'success'
