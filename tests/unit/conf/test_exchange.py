# SPDX-License-Identifier: Apache-2.0

from oslo_config import cfg
import pytest

from nova_fairness.agent import settings
from nova_fairness.conf import exchange
from nova_fairness.conf import opts
from nova_fairness.exchange import limits


@pytest.fixture
def conf():
    made = cfg.ConfigOpts()
    opts.register_opts(made)
    made([], project='test', default_config_files=[])
    return made


def test_defaults_are_those_of_the_bounds(conf):
    got = settings.exchange_limits(conf.fairness_exchange)
    default = limits.Bounds()
    assert (got.capacity == default.capacity).all()
    for name in (
        'domain',
        'view_max_age',
        'max_users',
        'max_total_users',
        'max_peers',
        'max_heaviness',
        'forget_after_s',
    ):
        assert getattr(got, name) == getattr(default, name)


@pytest.mark.parametrize('domain', ['', 'a b', '-a', 'a' * 64, 'a/b'])
def test_a_domain_that_no_transport_could_name_is_refused(conf, domain):
    with pytest.raises(ValueError, match="doesn't match regex"):
        conf.set_override('domain', domain, group=exchange.GROUP.name)


@pytest.mark.parametrize('domain', ['a', 'cell1', 'A.b_c-9', 'a' * 63])
def test_a_domain_is_a_name(conf, domain):
    conf.set_override('domain', domain, group=exchange.GROUP.name)
    assert conf.fairness_exchange.domain == domain
