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
            ('on', 'always; otherwise the agent does not start'),
            ('off', 'never; the agent runs on its own'),
        ],
        advanced=True,
        help="""
Whether the agent is a service of Nova. As such it is listed by ``openstack
compute service list``, and asks Nova for the owner of a VM whose domain does
not name one. Use ``on`` to notice at once that Nova cannot be reached.
""",
    ),
    cfg.ListOpt(
        'config_files',
        default=['/etc/nova/nova.conf'],
        advanced=True,
        help="""
Files of Nova's configuration: those with which nova-compute is started on this
node. They must name its ``transport_url``, and their ``host`` must be that of
``[fairness]``. Change it if nova-compute reads other files.
""",
    ),
    cfg.StrOpt(
        'quota_section',
        default='service_user',
        advanced=True,
        help="""
Section of Nova's configuration with the credentials for asking Nova and
Keystone for quotas. They need the role ``admin``. Change it if those of
``service_user`` lack that role.
""",
    ),
    cfg.StrOpt(
        'region_name',
        default='',
        advanced=True,
        help="""
Region of the endpoints that are asked for quotas. Empty: any. Set it if
Keystone has several regions.
""",
    ),
    cfg.FloatOpt(
        'quota_interval',
        default=300.0,
        min=1.0,
        max=86400.0,
        advanced=True,
        help="""
Seconds after which a user's quota is asked for again. Lower it to see changed
quotas sooner.
""",
    ),
]
