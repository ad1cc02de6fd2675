# SPDX-License-Identifier: Apache-2.0

"""Options of what the agent tells: ``[fairness_observe]``."""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'fairness_observe',
    title='What the agent tells',
    help='Prometheus endpoint, status and notifications of the agent.',
)

OPTS = [
    cfg.HostAddressOpt(
        'prometheus_host',
        default='127.0.0.1',
        help="""
Address on which ``/metrics`` and ``/status`` are served over HTTP, without
authentication: they name users and VMs, so keep it on a management network.
""",
    ),
    cfg.PortOpt(
        'prometheus_port',
        default=9583,
        help='TCP port of the endpoint. 0: no endpoint.',
    ),
    cfg.FloatOpt(
        'throttled_weight',
        default=0.25,
        min=0.0,
        max=1.0,
        help="""
Weight from which down a VM is called throttled in notifications; 1 is neutral.
The smallest weight that ``[fairness] max_weight_ratio`` allows is called so in
any case. Notifications are sent if ``[oslo_messaging_notifications] driver``
says how.
""",
    ),
    cfg.IntOpt(
        'notification_queue',
        default=1000,
        min=1,
        help="""
Notifications that wait to be sent at most. Rounds never wait for them: what is
more is dropped, and counted.
""",
    ),
]
