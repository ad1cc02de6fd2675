# SPDX-License-Identifier: Apache-2.0

"""Opens the transport of the configuration, or reports why it is unusable."""

from collections.abc import Sequence

from oslo_config import cfg
import oslo_messaging
from oslo_messaging import exceptions

from nova_fairness import exception
from oslo_messaging_zmq import options
from oslo_messaging_zmq.access import security
from oslo_messaging_zmq.redis import url as transport_url


def open_transport(
    conf: cfg.ConfigOpts, remote_modules: Sequence[str] = ()
) -> oslo_messaging.Transport:
    """Load the driver of ``transport_url``.

    :param remote_modules: modules whose exceptions keep their class in RPC.
    :raises ConfigurationError: if there is no such driver, or its
        configuration is unusable.
    """
    try:
        url = parsed(conf)
        if is_ours(url):
            security.check(options.read(conf, url))
        return oslo_messaging.get_rpc_transport(
            conf, allowed_remote_exmods=list(remote_modules)
        )
    except (
        oslo_messaging.MessagingException,
        exceptions.ConfigurationError,
        ValueError,
    ) as error:
        raise exception.ConfigurationError(
            f'transport_url cannot be used: {error}'
        ) from error


def parsed(conf: cfg.ConfigOpts) -> oslo_messaging.TransportURL:
    """Parse ``transport_url``.

    :raises ConfigurationError: if it is no URL; the message contains no part
        of a password.
    """
    try:
        return oslo_messaging.TransportURL.parse(conf)
    except ValueError:
        # What comes after a # or / in a password is read as another part.
        raise exception.ConfigurationError(
            'transport_url cannot be read: a host, port or password has an '
            'unexpected form; write special characters of a password as '
            '%-codes, such as %23 for # and %2F for /'
        ) from None


def is_ours(url: oslo_messaging.TransportURL) -> bool:
    """Check whether a URL belongs to this product's zmq driver."""
    return str(url.transport).partition('+')[0] == 'zmq'


def redis_of(
    conf: cfg.ConfigOpts,
) -> transport_url.RedisSettings | None:
    """Return the Redis of the transport; ``None`` if it has none.

    :raises InvalidTransportURL: if the URL has another form.
    :raises ConfigurationError: if it is no URL.
    """
    url = parsed(conf)
    if not is_ours(url):
        return None
    return transport_url.parse(options.without_options(url))
