# SPDX-License-Identifier: Apache-2.0

"""Options of what stands in front of Nova: ``[fairness_cluster]``."""

from collections.abc import Sequence
import copy

from oslo_config import cfg

from nova_fairness.conf import opts

GROUP = cfg.OptGroup(
    'fairness_cluster',
    title='Requests that wait',
    help="""
How the relay, which stands in front of conductor, and the cluster service,
which says who starts next, reach the cloud. They need the extra ``cluster`` of
this package.
""",
)

OPTS = [
    cfg.StrOpt(
        'database',
        default='sqlite:////var/lib/nova-fairness/requests.sqlite',
        secret=True,
        help="""
Where requests and their messages are kept: a URL of SQLAlchemy, such as
``mysql+pymysql://user:password@host/name`` or
``postgresql+psycopg://user:password@host/name``. All processes share it.
""",
    ),
    cfg.StrOpt(
        'key_file',
        default='/etc/nova-fairness/requests.keys',
        help="""
File of the keys by which held messages are sealed, one a line, the first one
seals. It is for its owner only.
""",
    ),
    cfg.StrOpt(
        'broker',
        default='',
        secret=True,
        help="""
URL of the broker that Nova uses, such as ``amqp://user:password@host:5672//``;
several of one cluster are divided by ``;``. It is the ``transport_url`` of
nova-api with ``amqp://`` in place of ``rabbit://``.
""",
    ),
    cfg.MultiStrOpt(
        'cell_broker',
        default=[],
        secret=True,
        help="""
URL of the broker, or of the virtual host, of a further cell: one that is not
``broker``. May be given several times. nova-api speaks to each with its own
``control_exchange``, so the relay makes a way through each; nothing waits
there. Cells of an own broker that are missing here cannot be reached by
nova-api.
""",
    ),
    cfg.StrOpt(
        'front_exchange',
        default='nova_front',
        help='``control_exchange`` of nova-api, which the relay serves.',
    ),
    cfg.StrOpt(
        'nova_exchange',
        default='nova',
        help='``control_exchange`` of all other services of Nova.',
    ),
    cfg.BoolOpt(
        'nova_exchange_durable',
        default=False,
        help='Whether these services have ``amqp_durable_queues``.',
    ),
    cfg.StrOpt(
        'cloud',
        default='',
        help="""
The cloud in ``clouds.yaml`` that is asked, as an administrator; empty: the one
that the environment names.
""",
    ),
    cfg.StrOpt(
        'limits_file',
        default='',
        help="""
File of JSON that says what projects are guaranteed and may have at most::

    {"PROJECT": {"guaranteed": {"VCPU": 40}, "ceiling": {"VCPU": 100}}}

by resource class of Placement. Empty: all projects share everything.
""",
    ),
    cfg.FloatOpt(
        'interval',
        default=2.0,
        min=0.1,
        help='Seconds between two looks at the cloud.',
    ),
    cfg.FloatOpt(
        'lease',
        default=30.0,
        min=1.0,
        help="""
Seconds after which another process takes over from one that is silent.
""",
    ),
    cfg.FloatOpt(
        'longest_wait',
        default=0.0,
        min=0.0,
        help="""
Seconds after which a request that waits is given up and its servers are
deleted; 0 for never.
""",
    ),
    cfg.StrOpt(
        'unreadable',
        default='pass',
        choices=[
            ('pass', 'they start at once, as without the queue'),
            ('hold', 'they wait, and say why'),
        ],
        help="""
What becomes of messages of Nova that cannot be read, such as those of a newer
version.
""",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register them."""
    opts.register_group(conf, GROUP, OPTS)


def list_opts() -> Sequence[tuple[cfg.OptGroup, Sequence[cfg.Opt]]]:
    """List every option for the generator of the sample file."""
    return copy.deepcopy([(GROUP, OPTS)])
