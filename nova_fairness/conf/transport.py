# SPDX-License-Identifier: Apache-2.0

"""The option ``transport_url`` of oslo.messaging, which connects nodes.

The documentation of oslo.messaging applies. Only the default differs: it is
empty, because an agent without a transport is useful on a single node.
"""

import sys

from oslo_config import cfg
import oslo_messaging

SAMPLE = [
    cfg.StrOpt(
        'transport_url',
        default='',
        secret=True,
        help="""
URL of the transport that connects this node with other nodes, and
``nova-fairness-ctl`` with this node. All nodes of a domain must have the same
URL. Empty: the node compares only its own users. With
``zmq+redis://:password@host:6379/0`` messages go from node to node over
ZeroMQ; nodes find each other in Redis. ``zmq+rediss://`` uses TLS to Redis,
``zmq+sentinel://`` finds the address of Redis by Sentinel.
``rabbit://user:password@host:5672//`` goes through the cloud's broker; its
options are those of oslo.messaging. Set it if the domain has more than one
node.
""",
    ),
]
"""Option for the sample file only, which omits the options of brokers."""


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of oslo.messaging, with an empty URL as the
    default.
    """
    # Creating a URL registers its options, which have no public list of
    # their own; the list of all options would load every driver.
    oslo_messaging.TransportURL(conf)
    # This registers the options of notifications; the transport is unused.
    oslo_messaging.get_notification_transport(conf, 'fake:')
    conf.set_default('transport_url', '')
    register_watchers(conf)


def register_watchers(conf: cfg.ConfigOpts) -> None:
    """Register options that newer releases of oslo.messaging register only on
    their global object.
    """
    for path, options in (
        ('_metrics', 'oslo_messaging_metrics'),
        ('_tracing', 'oslo_messaging_tracing'),
    ):
        watching = sys.modules.get(f'oslo_messaging.{path}.client')
        if hasattr(watching, options):
            conf.register_opts(getattr(watching, options), group=options)
