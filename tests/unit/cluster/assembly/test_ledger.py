# SPDX-License-Identifier: Apache-2.0

"""How the ledger is kept, by the options of the service."""

from oslo_config import cfg
import pytest

from nova_fairness import exception
from nova_fairness.cluster.assembly import ledger
from nova_fairness.conf import cluster as cluster_conf
from nova_fairness.shares import measured


def configured(**options):
    conf = cfg.ConfigOpts()
    cluster_conf.register_opts(conf)
    conf([])
    for name, value in options.items():
        conf.set_override(name, value, 'fairness_cluster')
    return conf


def test_allocated_resources_are_charged_and_no_agent_is_asked():
    made = ledger.build_ledger_keeper(configured(), None, None)
    assert made._charge is measured.Charge.ALLOCATED
    assert made._weights == {}


@pytest.mark.parametrize('charge', ['used', 'larger'])
def test_agents_cannot_be_asked_without_a_transport(charge):
    with pytest.raises(
        exception.ConfigurationError,
        match=f'charge = {charge} needs transport_url',
    ):
        ledger.build_ledger_keeper(configured(charge=charge), None, None)


@pytest.mark.parametrize('option', ['charge_weights', 'budget_weights'])
@pytest.mark.parametrize('weight', [-1.0, float('nan'), float('inf')])
def test_a_weight_that_is_none_is_refused(option, weight):
    conf = configured(**{option: {'VCPU': 1.0, 'DISK_GB': weight}})
    with pytest.raises(
        exception.ConfigurationError, match=f'{option}: .* for DISK_GB'
    ):
        ledger.build_ledger_keeper(conf, None, None)
