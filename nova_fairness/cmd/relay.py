# SPDX-License-Identifier: Apache-2.0

"""``nova-fairness-relay``: holds builds and forwards all other messages to
conductor.
"""

import sys
import warnings

# Libraries import eventlet where it is installed; this program never runs it.
warnings.filterwarnings('ignore', message=r'\s*Eventlet is deprecated')

from oslo_service import backend  # noqa: E402

backend.init_backend(backend.BackendType.THREADING)

from oslo_config import cfg  # noqa: E402

from nova_fairness.cmd import queue_commands  # noqa: E402
from nova_fairness.model import plain  # noqa: E402
from nova_fairness.observe import queue  # noqa: E402
from nova_fairness.relay import jobs  # noqa: E402
from nova_fairness.relay import link  # noqa: E402
from nova_fairness.runtime import supervision  # noqa: E402


def _run(conf: cfg.ConfigOpts) -> None:
    stopped = queue_commands.stop_event()
    manager = supervision.ServiceManager()
    relay = queue_commands.create_relay(conf, stopped, manager)
    collector = queue.QueueCollector(None, relay.told)
    with (
        queue_commands.metrics_served(
            conf, 'relay_prometheus_port', collector
        ),
        jobs.running(relay.work, stopped),
        manager.serving(),
    ):
        stopped.wait()


def _declare(conf: cfg.ConfigOpts) -> None:
    for url, names in queue_commands.brokers(conf):
        link.Link(url, names).close()
        kind = 'the queue' if names.holds else 'a further cell'
        sys.stdout.write(
            plain.lines(f'{names.front}: exchange created for {kind}\n')
        )


def _remove(conf: cfg.ConfigOpts) -> None:
    for url, names in queue_commands.brokers(conf):
        link.remove(url, names)
        sys.stdout.write(
            plain.lines(f'{names.front}: exchange and queues removed\n')
        )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line of the relay.

    :returns: 0 on success, 1 if the command fails, 2 on wrong usage or
        configuration.
    """
    return queue_commands.main(
        'nova-fairness-relay',
        'Relay of messages from nova-api to conductor.',
        {
            'run': (
                _run,
                'hold builds and forward all other messages until stopped',
            ),
            'declare': (
                _declare,
                'create exchanges and queues, before nova-api uses them',
            ),
            'remove': (
                _remove,
                'remove exchanges and queues that nova-api does not use',
            ),
        },
        arguments,
    )
