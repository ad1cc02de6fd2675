# SPDX-License-Identifier: Apache-2.0

"""Options of the agent as a service of Nova: ``[fairness_nova]``."""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'fairness_nova',
    title='Service of Nova',
    help="""
How the agent takes part in Nova. It needs the extra ``nova`` of this package,
and no database: everything goes through Nova's conductor.
""",
)

OPTS = [
    cfg.StrOpt(
        'service',
        default='auto',
        choices=[
            ('auto', 'if Nova is installed and can be configured'),
            ('on', 'always; the agent does not start where it cannot be'),
            ('off', 'never; the agent is on its own'),
        ],
        help="""
Whether the agent is a service of Nova: it is listed by ``openstack compute
service list``, and asks Nova who owns VMs whose domain does not say so.
""",
    ),
    cfg.ListOpt(
        'config_files',
        default=['/etc/nova/nova.conf'],
        help="""
Files of Nova's configuration, those with which nova-compute is started on this
node. They must name its ``transport_url``, and its ``host`` must be that of
``[fairness]``.
""",
    ),
    cfg.StrOpt(
        'quota_weights',
        default='',
        choices=[
            ('', 'only the weights in [fairness] quota_weights count'),
            ('instances', 'number of servers'),
            ('cores', 'number of vCPUs'),
            ('ram', 'memory'),
        ],
        help="""
Resource of Nova's quotas by which users (or projects, see ``[fairness]
entity``) are weighed: whoever may have twice the default limit is entitled to
twice as much. Limits of Nova and unified limits of Keystone count alike. No
limit at all weighs 1. Weights in ``[fairness] quota_weights`` come first. All
nodes must agree.
""",
    ),
    cfg.StrOpt(
        'quota_section',
        default='service_user',
        help="""
Section of Nova's configuration with the credentials by which Nova and Keystone
are asked for quotas. They need the role ``admin``.
""",
    ),
    cfg.StrOpt(
        'region_name',
        default='',
        help='Region of the endpoints that are asked for quotas; empty: any.',
    ),
    cfg.FloatOpt(
        'quota_interval',
        default=300.0,
        min=1.0,
        max=86400.0,
        help='Seconds after which a quota is asked for again.',
    ),
]
