# SPDX-License-Identifier: Apache-2.0

"""What ``upgrade check`` knows is told while the service runs, too."""

import threading

from oslo_config import cfg
import pytest

from nova_fairness import exception
from nova_fairness.cmd import repeated_checks
from nova_fairness.cmd import status_cloud
from nova_fairness.cmd import status_queue
from nova_fairness.cmd import status_results as results
from nova_fairness.conf import cluster as cluster_conf


@pytest.fixture
def checks(tmp_path):
    path = tmp_path / 'queue.conf'
    path.write_text(
        '[fairness_cluster]\n'
        f'database = sqlite:///{tmp_path}/store.sqlite\n'
        f'key_file = {tmp_path}/keys\n'
        'intervall = 3\n'
    )
    conf = cfg.ConfigOpts()
    cluster_conf.register_opts(conf)
    conf(['--config-file', str(path)], default_config_dirs=[])
    return repeated_checks.RepeatedChecks(conf, threading.Event())


def test_a_check_that_succeeds_is_no_warning(checks, monkeypatch):
    def fails(conf):
        raise exception.ConfigurationError('it is gone; make a new one')

    monkeypatch.setattr(
        repeated_checks,
        'REPEATED',
        (
            ('Good', lambda conf: results.success('fine')),
            ('Odd', lambda conf: results.warning('mend it')),
            ('Keys of messages', fails),
        ),
    )
    checks.run_once()
    assert checks.warnings == (
        'Odd: mend it',
        'Keys of messages: it is gone; make a new one',
    )


def test_a_misspelt_option_and_missing_keys_are_named(checks, monkeypatch):
    kept = ('Keys of messages', 'Options', 'Exchanges of Nova')
    monkeypatch.setattr(
        repeated_checks,
        'REPEATED',
        [each for each in repeated_checks.REPEATED if each[0] in kept],
    )
    monkeypatch.setattr(repeated_checks, 'NOVA', '/nonexistent')
    checks.run_once()
    keys, options = checks.warnings
    assert keys.startswith('Keys of messages: ')
    assert 'intervall' in options


def test_every_check_is_repeated_or_known_better():
    repeated = {name for name, _ in repeated_checks.REPEATED}
    every = {*status_queue.CHECKS, *status_cloud.CHECKS}
    assert {name for name, _ in every} == (
        repeated | repeated_checks.NOT_REPEATED
    ) - {'Exchanges of Nova'}


def test_checks_are_repeated_until_the_service_stops(checks, monkeypatch):
    looked = []
    monkeypatch.setattr(
        type(checks),
        'run_once',
        lambda self: (looked.append(1), checks._stopped.set()),
    )
    checks.run()
    assert looked == [1]
