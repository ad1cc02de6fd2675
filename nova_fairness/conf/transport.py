# SPDX-License-Identifier: Apache-2.0

"""How nodes reach each other: the option ``transport_url`` of oslo.messaging.

The option is oslo.messaging's own, so that all that is written about it
holds; only its default differs, because an agent without a transport is
useful on a single node.
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
URL by which this node reaches other nodes, and ``nova-fairness-ctl`` reaches
this node. All nodes of a domain must have the same URL. Empty: the node
compares only its own users. With ``zmq+redis://:password@host:6379/0``
messages go from node to node over ZeroMQ; nodes find each other in Redis.
``zmq+rediss://`` uses TLS to Redis, ``zmq+sentinel://`` asks Sentinel for the
address of Redis. ``rabbit://user:password@host:5672//`` goes through the
cloud's broker; its options are those of oslo.messaging. Set it as soon as
there are two nodes.
""",
    ),
]
"""For the sample file only, without the options of brokers."""


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register what oslo.messaging needs, with our default."""
    # Making one registers its options, which have no public list of their
    # own; the list of all would load every driver.
    oslo_messaging.TransportURL(conf)
    # Likewise those of notifications; this transport is never used.
    oslo_messaging.get_notification_transport(conf, 'fake:')
    conf.set_default('transport_url', '')
    register_watchers(conf)


def register_watchers(conf: cfg.ConfigOpts) -> None:
    """Register options that newer releases put on the global object only."""
    for path, options in (
        ('_metrics', 'oslo_messaging_metrics'),
        ('_tracing', 'oslo_messaging_tracing'),
    ):
        watching = sys.modules.get(f'oslo_messaging.{path}.client')
        if hasattr(watching, options):
            conf.register_opts(getattr(watching, options), group=options)
