# SPDX-License-Identifier: Apache-2.0

"""How the cluster service is told to move hosts."""

import threading
import types

from oslo_config import cfg
import pytest

from nova_fairness import exception
from nova_fairness.batch import slurm
from nova_fairness.cluster.assembly import border as border_assembly
from nova_fairness.cluster.openstack import clients
from nova_fairness.conf import cluster as cluster_conf
from nova_fairness.planners.border import demand
from tests.fixtures import fake_cloud


class FakeStore:
    """Is only passed on."""

    leaves = pledges = None

    def pseudonyms(self, kind, *parts):
        raise AssertionError('it is only passed on')


class FakeService:
    """Takes what else is counted."""

    charging = types.SimpleNamespace(counted=None)


def configured(tmp_path, monkeypatch, **options):
    path = tmp_path / 'partition.yaml'
    path.write_text('hosts: [{name: h1, cores: 8}]')
    conf = cfg.ConfigOpts()
    cluster_conf.register_opts(conf)
    conf([], project='x', default_config_files=[])
    options = {'batch': 'slurm', 'hosts_file': str(path), **options}
    for name, value in options.items():
        conf.set_override(name, value, 'fairness_partition')
    conf.set_override('hosts_interval', 3.0, 'fairness_cluster')
    apis = fake_cloud.FakeCloud().apis
    monkeypatch.setattr(clients, 'connect', lambda *_: apis)
    return border_assembly.build_border_controller(
        conf, FakeStore(), FakeService(), threading.Event()
    )


def test_no_host_moves_unless_a_batch_system_is_named(tmp_path, monkeypatch):
    assert configured(tmp_path, monkeypatch, batch='') is None


def test_rules_of_operators_reach_the_plan(tmp_path, monkeypatch):
    usual = configured(tmp_path, monkeypatch)
    assert usual._rules == demand.BorderRules()
    assert isinstance(usual._batch, slurm.Slurm)
    assert usual.name == 'partition'
    assert usual._interval_s == 3.0
    other = configured(
        tmp_path,
        monkeypatch,
        patience=1.0,
        spare_cores=2.0,
        stay=3.0,
        most_moving=4,
        most_per_day=5,
        time_to_live=6.0,
        end_actions=['shelve', 'delete'],
        contended=7,
        settle=8.0,
    )
    assert usual._cloud._settles_s == 30.0
    assert other._cloud._settles_s == 8.0
    assert other._rules == demand.BorderRules(
        1.0, 2.0, 3.0, 4, 5, 6.0, True, 7
    )


@pytest.mark.parametrize(
    ('options', 'said'),
    [
        ({'batch': 'pbs'}, 'batch, batch_parameters: no batch system'),
        ({'batch_parameters': {'speed': 1.0}}, 'has no number speed'),
        ({'hosts_file': '/none'}, 'hosts_file: /none cannot be read'),
    ],
)
def test_an_unusable_value_is_named_with_its_option(
    tmp_path, monkeypatch, options, said
):
    with pytest.raises(exception.ConfigurationError) as caught:
        configured(tmp_path, monkeypatch, **options)
    assert str(caught.value).startswith('[fairness_partition] ')
    assert said in str(caught.value)
