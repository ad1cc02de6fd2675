# SPDX-License-Identifier: Apache-2.0

"""What is said of a transport that cannot be opened."""

from oslo_config import cfg
import oslo_messaging
import pytest

from nova_fairness import exception
from nova_fairness.runtime import transport


@pytest.mark.parametrize('password', ['hun#ter2', 'hun/ter2', 'hun?ter2'])
@pytest.mark.parametrize(
    'open_it', [transport.open_transport, transport.redis_of]
)
def test_a_password_with_special_characters_is_refused_and_not_shown(
    password, open_it
):
    conf = cfg.ConfigOpts()
    conf.register_opts(oslo_messaging.transport._transport_opts)
    conf.set_default('transport_url', f'zmq+redis://:{password}@db:6379/0')
    with pytest.raises(exception.ConfigurationError, match='%23') as caught:
        open_it(conf)
    assert 'hun' not in str(caught.value)
