# SPDX-License-Identifier: Apache-2.0

"""Options of metrics and status: ``[fairness_observe]``."""

from oslo_config import cfg

SHARED = (
    cfg.HostAddressOpt(
        'prometheus_host',
        default='127.0.0.1',
        help="""
Address on which the agent serves ``/metrics`` and ``/status``, and the cluster
service and the relay serve ``/metrics``. Set it to the address at which
Prometheus reaches this host. Every client that reaches the port can read IDs
of users, projects and VMs, so set ``prometheus_client_ca`` or use a management
network.
""",
    ),
    cfg.StrOpt(
        'prometheus_certificate',
        default='',
        advanced=True,
        help="""
Path of a PEM file with the certificate of this host, and with intermediate
certificates if there are any. Set it to serve metrics and status over HTTPS
only. The file is read at the start.
""",
    ),
    cfg.StrOpt(
        'prometheus_key',
        default='',
        advanced=True,
        help="""
Path of the PEM file with the key of ``prometheus_certificate``, without a
password. Leave it empty if the key is in the file of the certificate.
""",
    ),
    cfg.StrOpt(
        'prometheus_client_ca',
        default='',
        advanced=True,
        help="""
Path of a PEM file with the certificate authorities of clients. Set it to
refuse every client without a certificate of one of these authorities. It needs
``prometheus_certificate``.
""",
    ),
)
"""Options that the agent, the cluster service and the relay share."""

GROUP = cfg.OptGroup(
    'fairness_observe',
    title='Metrics and status',
    help="""
Prometheus endpoint of the agent, the cluster service and the relay. The ports
of the service and the relay are in ``[fairness_cluster]``.
""",
)

OPTS = [
    cfg.PortOpt(
        'prometheus_port',
        default=9583,
        advanced=True,
        help="""
TCP port of the agent's Prometheus endpoint, from 0 to 65535; 0: no endpoint.
Change it if another program uses the port.
""",
    ),
    *SHARED,
]
