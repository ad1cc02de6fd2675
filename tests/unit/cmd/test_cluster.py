# SPDX-License-Identifier: Apache-2.0

"""What the command line of the cluster service says."""

import pathlib
import stat
import sys
import threading
import types

import numpy as np
from oslo_config import cfg
import pytest

from nova_fairness import exception
from nova_fairness.cluster import usage as usage_package
from nova_fairness.cluster.assembly import accounts
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import schema
from nova_fairness.cluster.store import sealing
from nova_fairness.cluster.store import store as store_module
from nova_fairness.cluster.usage import export
from nova_fairness.cmd import cluster
from nova_fairness.conf import cluster as cluster_conf
from nova_fairness.model import cast as cast_module
from nova_fairness.model import cluster as model
from nova_fairness.observe import queue as queue_observe
from nova_fairness.shares import ledger
from tests.fixtures import fake_cloud
from tests.fixtures import ports


def configured(tmp_path, **options):
    options.setdefault('database', f'sqlite:///{tmp_path}/store.sqlite')
    lines = [f'{name} = {value}' for name, value in options.items()]
    path = tmp_path / 'service.conf'
    path.write_text('\n'.join(['[fairness_cluster]', *lines]))
    return ['--config-file', str(path)]


def test_help_lists_the_commands(capsys):
    with pytest.raises(SystemExit) as ended:
        cluster.main(['--help'])
    assert ended.value.code == 0
    assert 'upgrade' in capsys.readouterr().out


def test_tables_are_upgraded(tmp_path, capsys):
    given = configured(tmp_path)
    assert cluster.main([*given, 'upgrade']) == 0
    assert cluster.main([*given, 'upgrade']) == 0
    newest = schema.known_revisions()[0]
    assert f'revision {newest}' in capsys.readouterr().out
    mode = (tmp_path / 'store.sqlite').stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


def test_the_file_that_the_page_names_is_read(tmp_path, capsys, monkeypatch):
    _, path = configured(tmp_path)
    monkeypatch.setattr(cluster_conf, 'CONFIG_FILE', pathlib.Path(path))
    assert cluster.main(['upgrade']) == 0
    assert (tmp_path / 'store.sqlite').exists()


def test_the_page_names_the_file_that_is_read():
    page = pathlib.Path(__file__).parents[3] / 'doc/source/admin/queue.rst'
    assert f':file:`{cluster_conf.CONFIG_FILE}`' in page.read_text('utf-8')


@pytest.mark.parametrize(
    ('options', 'code', 'said'),
    [
        ({}, 2, 'broker: empty'),
        ({'broker': 'amqp://h//', 'unreadable': 'perhaps'}, 2, 'perhaps'),
        ({'broker': 'amqp://h//', 'limits_file': '/none'}, 2, '/none'),
        ({'broker': 'amqp://h//', 'shares_file': '/none'}, 2, '/none cannot'),
        ({'broker': 'amqp://h//', 'order': 'none'}, 2, "no order 'none'"),
        (
            {'broker': 'amqp://h//', 'order_parameters': 'age:1'},
            2,
            'order fair_tree has no number age',
        ),
        *(
            ({'broker': 'amqp://h//', 'room_per_hour': '9', **each}, 2, said)
            for each, said in (
                ({'end_notice': '0'}, 'end_notice'),
                ({'end_notice': '-600'}, 'end_notice'),
                (
                    {'end_notice': 'nan'},
                    'end_notice, end_patience: the',
                ),
                ({'end_notice': 'inf'}, 'at least 120 s, got inf'),
                ({'end_patience': 'nan'}, 'above 0 s, got nan'),
                ({'end_actions': ''}, 'end_actions must name'),
                ({'idle_after': 'nan'}, 'got nan s'),
                ({'idle_after': '604800'}, 'needs transport_url'),
                ({'room_least_run': '-1'}, 'room_least_run'),
                ({'room_patience': 'nan'}, 'room_*: patience_s must be'),
                ({'room_margin': '-1'}, 'room_margin'),
                ({'room_margin': '0.5'}, 'room_*: margin must be a number'),
                ({'room_margin': 'inf'}, 'margin must be a number of at'),
                ({'room_actions': 'stop'}, 'must name shelve, snapshot'),
                ({'room_owner_actions': 'reboot'}, 'reboot'),
            )
        ),
        ({'broker': 'amqp://h//', 'key_file': '/none'}, 1, '/none'),
    ],
)
def test_an_error_is_printed_in_one_line(
    tmp_path, capsys, options, code, said
):
    assert cluster.main(configured(tmp_path, **options)) == code
    errors = capsys.readouterr().err
    assert said in errors
    assert 'Traceback' not in errors


def test_keys_are_changed_while_messages_wait(tmp_path):
    path = tmp_path / 'keys'
    url = f'sqlite:///{tmp_path}/store.sqlite'
    given = configured(tmp_path, key_file=path)
    cast = cast_module.Cast('m1', 'm', 1.0, 'k', b'body', {})
    assert cluster.main([*given, 'new-key']) == 0
    assert cluster.main([*given, 'upgrade']) == 0
    store_module.open_store(url, path).store_message(cast)
    assert cluster.main([*given, 'new-key']) == 0
    assert len(path.read_text().split()) == 2
    assert cluster.main([*given, 'reseal']) == 0
    assert len(path.read_text().split()) == 1
    assert store_module.open_store(url, path).read_message('m1') == cast


def test_the_address_of_metrics_is_that_of_fairness_observe(caplog):
    conf = cfg.ConfigOpts()
    cluster_conf.register_opts(conf)
    conf([])
    conf.set_override('prometheus_port', ports.free(), 'fairness_cluster')
    conf.set_override('prometheus_host', '192.0.2.1', 'fairness_observe')
    collector = queue_observe.QueueCollector(None, None)
    observed = cluster.queue_commands.metrics_served(
        conf, 'prometheus_port', collector
    )
    with pytest.raises(exception.ConfigurationError, match=r'192\.0\.2\.1'):
        observed.__enter__()
    conf.set_override('prometheus_key', '/no/such', 'fairness_observe')
    with cluster.queue_commands.metrics_served(
        conf, 'prometheus_port', collector
    ):
        said = caplog.messages[-1]
    assert '[fairness_observe] prometheus_certificate is empty' in said


@pytest.mark.parametrize('wanted', [False, True])
def test_the_tree_is_keystones_where_that_is_wanted(wanted):
    conf = cfg.ConfigOpts()
    cluster_conf.register_opts(conf)
    conf([])
    conf.set_override('keystone_tree', wanted, 'fairness_cluster')
    cloud = fake_cloud.FakeCloud()
    cloud.add_domain('physics')
    cloud.add_project('strings', 'physics')
    file = (model.Account('strings', None, 3.0),)
    store = types.SimpleNamespace(read_ledger=records.UseRecords)
    found = accounts._mirrored_accounts(
        conf, cloud.apis, store, lambda: file
    )()
    strings = model.Account('strings', 'physics' if wanted else None, 3.0)
    assert found == (
        (model.Account('physics'), strings) if wanted else (strings,)
    )


def charged(tmp_path):
    """A store in which something was charged, and how it is named."""
    keys = tmp_path / 'keys'
    given = configured(tmp_path, key_file=keys)
    sealing.add_key(keys)
    assert cluster.main([*given, 'upgrade']) == 0
    store = store_module.open_store(f'sqlite:///{tmp_path}/store.sqlite', keys)
    epoch = store.take_over(0, 'one', 1.0)
    amounts = {'p': {'VCPU': 2.0}}
    store.charges.add(
        records.ChargeRecord(1, 600.0, 1200.0, {'VCPU': 8.0}, amounts, {}),
        epoch,
    )
    again = ledger.UseLedger(604800.0, 600.0).advanced(
        1200.0, {'p': np.array([2.0])}, np.array([8.0])
    )
    part = float(again.use['p'][0])
    store.write_ledger(
        records.UseRecords(1200.0, {'p': {'VCPU': part}}), epoch
    )
    return given


def test_charges_are_exported(tmp_path, capsys):
    given, path = charged(tmp_path), tmp_path / 'ledger.csv'
    assert cluster.main([*given, '--to', str(path), 'export-ledger']) == 0
    assert f'{path}: 1 row' in capsys.readouterr().out
    [_, row] = path.read_text().splitlines()
    assert row.startswith('"p","VCPU",1970-01-01 00:10:00')
    assert cluster.main([*given, 'export-ledger']) == 2
    assert '--to: no file given' in capsys.readouterr().err


def test_without_its_library_nothing_is_exported(
    tmp_path, capsys, monkeypatch
):
    given = charged(tmp_path)
    monkeypatch.delitem(sys.modules, export.__name__)
    monkeypatch.delattr(usage_package, 'export')
    monkeypatch.setitem(sys.modules, 'pyarrow', None)
    assert cluster.main([*given, '--to', 'ledger.csv', 'export-ledger']) == 2
    assert 'install the extra parquet' in capsys.readouterr().err


def test_the_ledger_is_checked_against_charges(tmp_path, capsys):
    given = charged(tmp_path)
    assert cluster.main([*given, 'check-ledger']) == 0
    said = capsys.readouterr().out
    assert 'from 1 charge: the largest difference is 0 of the cloud' in said
    path = tmp_path / 'service.conf'
    path.write_text(path.read_text() + '\nhalf_life = 60\n')
    assert cluster.main([*given, 'check-ledger']) == 1
    assert 'after a change of half_life' in capsys.readouterr().err


def test_tables_that_are_missing_are_named(tmp_path, capsys):
    keys = tmp_path / 'keys'
    sealing.add_key(keys)
    given = configured(tmp_path, broker='amqp://h//', key_file=keys)
    assert cluster.main(given) == 1
    assert 'nova-fairness-cluster upgrade' in capsys.readouterr().err


class FakeFollower:
    """A service whose leader is another process."""

    def __init__(self, stopped):
        self.stopped = stopped

    def resign(self):
        """It never led."""

    def drain(self):
        self.stopped.set()
        raise exception.NotLeading('ctl2')


class FakeStore:
    def requests(self, _states):
        return []


def test_a_drain_is_told_where_another_process_leads(
    tmp_path, capsys, monkeypatch
):
    stopped = threading.Event()
    made = FakeFollower(stopped), FakeStore()
    monkeypatch.setattr(cluster, '_service', lambda conf, closing: made)
    monkeypatch.setattr(cluster.queue_commands, 'stop_event', lambda: stopped)
    assert cluster.main([*configured(tmp_path), 'drain']) == 1
    said = capsys.readouterr().err
    assert (
        'another process is the leader; stop the service on the host ctl2'
        in said
    )


def test_the_service_asks_keystone_which_accounts_there_are():
    options = types.SimpleNamespace(keystone_tree=False)
    cloud = fake_cloud.FakeCloud()
    cloud.add_project('beta-id', 'default')
    used = types.SimpleNamespace(parts={})
    made = accounts.build_accounts(
        types.SimpleNamespace(fairness_cluster=options),
        tuple,
        cloud.apis,
        types.SimpleNamespace(read_ledger=lambda: used),
    )
    made.require('beta-id', {'share': 2.0})
    with pytest.raises(exception.UnknownAccount):
        made.require('beta', {'share': 2.0})
