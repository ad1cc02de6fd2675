# SPDX-License-Identifier: Apache-2.0

"""Options of the agent as a service of Nova: ``[fairness_nova]``."""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'fairness_nova',
    title='Service of Nova',
    help="""
The agent as a service of Nova. It needs the extra ``nova`` of this package,
and no database: it reads and writes through Nova's conductor.
""",
)

OPTS = [
    cfg.StrOpt(
        'service',
        default='auto',
        choices=[
            ('auto', 'a service of Nova if Nova is installed and configured'),
            ('on', 'a service of Nova; the agent does not start without it'),
            ('off', 'not a service of Nova; the agent runs stand-alone'),
        ],
        advanced=True,
        help="""
Whether the agent is a service of Nova. Then ``openstack compute service list``
shows it, and it queries Nova for the owner of a VM whose libvirt domain does
not name the owner. Use ``on`` to notice at once that Nova cannot be reached.
""",
    ),
    cfg.ListOpt(
        'config_files',
        default=['/etc/nova/nova.conf'],
        advanced=True,
        help="""
Configuration files with which nova-compute is started on this node. They must
contain its ``transport_url``, and their ``host`` must be equal to ``[fairness]
host``. Change it if nova-compute reads other files.
""",
    ),
    cfg.StrOpt(
        'quota_section',
        default='service_user',
        advanced=True,
        help="""
Section of Nova's configuration with the credentials for reading quotas from
Nova and Keystone. They need the role ``admin``. Change it if the user in
``service_user`` does not have that role.
""",
    ),
    cfg.StrOpt(
        'region_name',
        default='',
        advanced=True,
        help="""
Region of the endpoints from which quotas are read. Empty: any region. Set it
if Keystone has several regions.
""",
    ),
    cfg.FloatOpt(
        'quota_interval',
        default=300.0,
        min=1.0,
        max=86400.0,
        advanced=True,
        help="""
Seconds after which the quota of a user is read again. Lower it to apply
changed quotas sooner.
""",
    ),
]
