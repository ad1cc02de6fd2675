# SPDX-License-Identifier: Apache-2.0

"""Transports that hang or fail, as with a broker that is away."""

import threading

from oslo_config import cfg
import oslo_messaging

from nova_fairness.conf import transport as transport_options


def working():
    """oslo.messaging's own transport in memory; one per test."""
    conf = cfg.ConfigOpts()
    transport_options.register_opts(conf)
    conf([], project='test', default_config_files=[])
    return oslo_messaging.get_rpc_transport(conf, url='fake://')


class FakeOutage:
    """Makes a transport fail or hang until it is over.

    :param transport: a working one.
    :param hangs: block instead of raising.
    """

    def __init__(self, transport, *, hangs=False):
        self.tried = threading.Event()
        self._over = threading.Event()
        self._hangs = hangs
        self._send, self._listen = transport._send, transport._listen
        transport._send, transport._listen = self._sending, self._listening

    def end(self):
        """Let everything work again."""
        self._over.set()

    def _sending(self, *given, **named):
        self._suffer()
        return self._send(*given, **named)

    def _listening(self, *given):
        self._suffer()
        return self._listen(*given)

    def _suffer(self):
        self.tried.set()
        if self._hangs:
            self._over.wait()
        elif not self._over.is_set():
            raise ConnectionError('the broker is away')
