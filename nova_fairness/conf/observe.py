# SPDX-License-Identifier: Apache-2.0

"""Options of what the agent tells: ``[fairness_observe]``."""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'fairness_observe',
    title='Logs, metrics and records of the agent',
    help='Prometheus endpoint, status and notifications of the agent.',
)

OPTS = [
    cfg.HostAddressOpt(
        'prometheus_host',
        default='127.0.0.1',
        help="""
Address on which ``/metrics`` and ``/status`` are served over HTTP. Set it to
the address at which Prometheus reaches this node. Anybody who reaches the port
can read ids of users and VMs, so use a management network.
""",
    ),
    cfg.PortOpt(
        'prometheus_port',
        default=9583,
        advanced=True,
        help="""
TCP port of the Prometheus endpoint, from 0 to 65535; 0: no endpoint. Change it
if another program has the port.
""",
    ),
    cfg.FloatOpt(
        'throttled_weight',
        default=0.25,
        min=0.0,
        max=1.0,
        advanced=True,
        help="""
Weight at or below which notifications call a VM throttled, from 0 to 1; 1 is
neutral. No unit. The smallest weight that ``[fairness] max_weight_ratio``
allows is called so in any case. Notifications are sent if
``[oslo_messaging_notifications] driver`` is set. Lower it to hear of fewer
VMs.
""",
    ),
    cfg.IntOpt(
        'notification_queue',
        default=1000,
        min=1,
        advanced=True,
        help="""
Largest number of notifications that wait to be sent; at least 1. Rounds never
wait for them: further ones are dropped and counted. Raise it if the log says
that notifications are dropped.
""",
    ),
]
