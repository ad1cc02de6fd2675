# SPDX-License-Identifier: Apache-2.0

"""Options of what stands in front of Nova: ``[fairness_cluster]``."""

from collections.abc import Sequence
import copy
import pathlib

from oslo_config import cfg
from oslo_config import types

from nova_fairness.conf import cluster_ends
from nova_fairness.conf import cluster_room
from nova_fairness.conf import exchange
from nova_fairness.conf import observe
from nova_fairness.conf import opts
from nova_fairness.conf import partition
from nova_fairness.conf import plans
from nova_fairness.conf import transport

GROUP = cfg.OptGroup(
    'fairness_cluster',
    title='Requests that wait',
    help="""
How the relay, which stands in front of conductor, and the cluster service,
which decides what starts next, reach the cloud. They need the extra
``cluster`` of this package.
""",
)

CONFIG_FILE = pathlib.Path('/etc/nova-fairness/nova-fairness-cluster.conf')
"""The queue's programs read this file unless they are given another one."""

OPTS = [
    cfg.StrOpt(
        'database',
        default='sqlite:////var/lib/nova-fairness/requests.sqlite',
        secret=True,
        help="""
URL of the database of requests and held messages, in the form of SQLAlchemy:
``mysql+pymysql://user:password@host/name`` or
``postgresql+psycopg://user:password@host/name``. All processes of the service
must have the same. Set it if there is more than one process: they cannot share
a file of SQLite on different hosts.
""",
    ),
    cfg.StrOpt(
        'key_file',
        default='/etc/nova-fairness/requests.keys',
        advanced=True,
        help="""
File of the keys that encrypt held messages, one on each line. The first one
encrypts; all of them decrypt. Only its owner may read it. Change it if keys
are kept elsewhere.
""",
    ),
    cfg.StrOpt(
        'broker',
        default='',
        secret=True,
        help="""
URL of the broker that Nova uses, such as ``amqp://user:password@host:5672//``.
Separate several of one RabbitMQ cluster by ``;``. Set it to nova-api's
``transport_url``, with ``amqp://`` in place of ``rabbit://``.
""",
    ),
    cfg.MultiStrOpt(
        'cell_broker',
        default=[],
        secret=True,
        advanced=True,
        help="""
URL of the broker, or of the virtual host, of a further cell; it is not
``broker``. May be given several times. Set it for each cell with a broker of
its own: nova-api sends to each by its own ``control_exchange``, so the relay
must pass messages on there, too. Nothing waits there. nova-api cannot reach
such a cell if it is missing here.
""",
    ),
    cfg.StrOpt(
        'front_exchange',
        default='nova_front',
        advanced=True,
        help="""
Exchange to which nova-api sends: its ``[DEFAULT] control_exchange``. The relay
takes messages from it. Change both together.
""",
    ),
    cfg.StrOpt(
        'nova_exchange',
        default='nova',
        advanced=True,
        help="""
Exchange of all other services of Nova: their ``[DEFAULT] control_exchange``.
Change it if they have another one.
""",
    ),
    cfg.BoolOpt(
        'nova_exchange_durable',
        default=False,
        advanced=True,
        help="""
Whether Nova's exchange is durable. Set it to what Nova's
``[oslo_messaging_rabbit] amqp_durable_queues`` says.
""",
    ),
    cfg.StrOpt(
        'cloud',
        default='',
        help="""
Cloud in ``clouds.yaml`` that the service looks at, as an administrator. Empty:
the one that the environment (``OS_CLOUD``) names. Set it if neither is there.
""",
    ),
    cfg.StrOpt(
        'region_name',
        default='',
        advanced=True,
        help="""
Region of that cloud that the service serves. Empty: the only one, or the first
one that ``clouds.yaml`` lists. Set it if the cloud has several regions;
``OS_REGION_NAME`` does not count for a cloud with a name.
""",
    ),
    cfg.StrOpt(
        'limits_file',
        default='',
        help="""
JSON file that says what projects are guaranteed and what they may have at
most, by resource class of Placement::

    {"PROJECT": {"guaranteed": {"VCPU": 40}, "ceiling": {"VCPU": 100},
                 "preemptible": {"VCPU": 200}}}

Amounts are whole numbers from 0 to 10^15.
``preemptible`` is the most that its preemptible servers may have; they count
for neither of the others.
Empty: all projects share everything. Set it to give projects parts of their
own.
""",
    ),
    cfg.StrOpt(
        'shares_file',
        default='',
        help="""
YAML file that says who has which share, which counts in all orders but
``fifo``::

    accounts:
    - {name: physics, share: 70}
    - {name: PROJECT_ID, parent: physics, share: 2}
    - {name: PROJECT_ID/USER_ID, parent: PROJECT_ID, share: 3}

Shares are numbers from 0 to 1e9, 1 if none is given, and count beside those of
the same parent. ``time_limit: 12h`` says how long servers of an account may
run, ``longest_wait: 3d`` how long its requests may wait, ``budget: 1000`` how
many unit-hours all below it may use in a period, ``ceiling: {VCPU: 40}`` what
they may have at once, ``windows`` when requests start. ``nominal: {VCPU: 40}``
is what an account owns, ``lending_limit`` how much of it others may use, and
``borrowing_limit`` how much it may use of theirs. Projects that are not
named stand at the top with a share of 1, users below their project. The file
is read again when it changes; if anything in it is wrong, nothing of it is
taken over. Set it if projects or users are to have different shares, limits or
budgets. All processes of the service must have the same.
""",
    ),
    cfg.BoolOpt(
        'keystone_tree',
        default=False,
        advanced=True,
        help="""
Whether the share tree has the domains and projects of Keystone, each below its
parent, by their IDs. ``shares_file`` and settings of the API count for them as
before; an account that the file names without a parent stays where Keystone
has it. If not set, projects without an entry stand side by side at the top.
Set it where domains or parent projects are to be divided among those below
them. All processes of the service must have the same.
""",
    ),
    cfg.StrOpt(
        'order',
        default='fair_tree',
        help="""
Which request is next of those beyond their project's guaranteed part:
``fair_tree``, ``multifactor``, ``synergy``, ``dominant_share`` and
``distribution`` go by shares; ``fifo`` is first come, first served. Others can
be installed. Set ``fifo`` if the first request should come first, however much
its project has. All processes of the service must have the same.
""",
    ),
    cfg.Opt(
        'order_parameters',
        type=types.Dict(types.Float()),
        default={},
        advanced=True,
        help="""
Numbers of the order, such as ``fair_share:1000,age:100``, by name; those not
named have their defaults. ``fair_tree`` has ``charge`` (0 to 1, default 1:
part of what a start asks for that counts as used at once, and while it runs).
``multifactor`` has the weights ``fair_share`` (1000), ``age`` (100) and
``size`` (10), and ``longest_s`` (seconds, at least 1, default 604800: after
which age counts in full). ``synergy`` has the weights ``vcpus`` (100) and
``memory`` (70). Weights are 0 to 1e9. ``distribution`` has ``vcpus`` (0),
``memory`` (1) and ``disk`` (0), from 0 to 3: powers of what a project has.
Change them if age or size should count more or less beside shares.
""",
    ),
    cfg.IntOpt(
        'backfill_depth',
        default=1000,
        min=0,
        advanced=True,
        help="""
Largest number of requests behind the first that does not fit that are tried:
they start before it where they do not delay it; 0: none, all wait for the
first. Servers of one group count as one. Lower it if a cycle takes too long.
""",
    ),
    cfg.FloatOpt(
        'backfill_patience',
        default=3600.0,
        min=0.0,
        advanced=True,
        help="""
Seconds that the first that does not fit may have waited for which others start
on hosts that are reserved for it, if by experience they end in time; by
default 3600 (an hour). After that the hosts that come closest to its need are
kept for it alone. Where enough servers have a time limit, room is reserved for
the moment at which they reach it, and nothing ends that. Lower it if large
requests should wait less however wrong expectations are; 0: others never start
there. Raise it, to a day or more, if hosts should not stand idle and shares
may be missed for it.
""",
    ),
    cfg.FloatOpt(
        'half_life',
        default=604800.0,
        min=60.0,
        advanced=True,
        help="""
Half-life of use in orders by shares, in seconds; at least 60, by default
604800 (seven days). Lower it if heavy users should be served again sooner;
raise it if shares should hold over months. Use is charged once a minute, and a
hundred times in a half-life that is shorter than 6000 seconds. All processes
of the service must have the same.
""",
    ),
    cfg.FloatOpt(
        'interval',
        default=2.0,
        min=0.1,
        advanced=True,
        help="""
Seconds between two looks at the cloud; at least 0.1. Raise it if Nova and
Placement are busy with answering.
""",
    ),
    cfg.FloatOpt(
        'hosts_interval',
        default=30.0,
        min=1.0,
        advanced=True,
        help="""
Seconds between two looks at hosts; at least 1. One is for migration plans, at
hosts, servers and live migrations; the other at both sides of hosts between
batch and cloud. Every tenth time use of both sides is told to the other, and
shares of groups are adjusted in the batch system; Slurm reckons with them at
its own times (``PriorityCalcPeriod``, usually 300 s). Raise it if Nova or the
batch system is busy with answering; lower it if ``half_life`` is minutes.
""",
    ),
    cfg.FloatOpt(
        'lease',
        default=30.0,
        min=1.0,
        advanced=True,
        help="""
Seconds of silence after which another process takes over; at least 1. Lower it
to go on sooner after a crash. It must be well above the longest cycle. After
ten times as long, and at least a minute, ``fail_mode`` counts.
""",
    ),
    cfg.FloatOpt(
        'longest_wait',
        default=0.0,
        min=0.0,
        advanced=True,
        help="""
Seconds after which a build that waits is given up and its servers are deleted;
0: never. Set it if users would rather be refused than wait for days. An
unshelving is never given up: Nova knows no way to take it back.
""",
    ),
    cfg.BoolOpt(
        'preemptible_marks',
        default=False,
        advanced=True,
        help="""
Whether requests are preemptible that say ``fairness:preemptible=true`` in the
metadata of the server or in a scheduler hint. Those of flavors with that extra
spec are in any case. It is read when the request comes; later changes have no
effect. Preemptible servers run in room that others leave. Set it if users may
use idle room.
""",
    ),
    cfg.ListOpt(
        'preemptible_projects',
        default=[],
        advanced=True,
        help="""
IDs of projects whose requests are all preemptible, marked or not, separated by
commas. Set it for projects that are to run only in room that others leave.
""",
    ),
    cfg.StrOpt(
        'charge',
        default='allocated',
        choices=[
            ('allocated', 'what accounts have allocated in Placement'),
            ('used', 'what agents measured that they use'),
            ('larger', 'the larger of both, in each resource class'),
        ],
        advanced=True,
        help="""
Amount that accounts are charged in orders by shares. Agents measure the use of
CPU time and memory, which are charged as ``VCPU`` and ``MEMORY_MB``. Other
classes, and users that no agent knows, are charged by allocation. While no
agent answers, all are charged by allocation. Budgets always count what is
allocated. ``used`` and ``larger`` need agents on all hosts and ``[DEFAULT]
transport_url``. Set ``used`` where users should pay for what they use and not
for what they keep idle; ``larger`` where they should pay for both. Three
agents are asked and the median counts, so that a single agent cannot falsify a
charge. A charge never exceeds the use that the allocation allows. All
processes of the service must have the same.
""",
    ),
    cfg.Opt(
        'charge_weights',
        type=types.Dict(types.Float()),
        default={},
        advanced=True,
        help="""
Weights by which the use of resource classes of Placement counts in orders by
shares, such as ``VCPU:1,MEMORY_MB:0.5,CUSTOM_GPU:2``, by name, at least 0, no
unit. Use of a class is a part of the cloud's amount of it. The class with the
largest product of part and weight counts. Classes that are not named do not
count. Empty: all classes count alike. Set it if some classes are scarcer than
others. All processes of the service must have the same.
""",
    ),
    cfg.FloatOpt(
        'preemptible_charge',
        default=0.0,
        min=0.0,
        max=1.0,
        advanced=True,
        help="""
Factor by which the use of preemptible servers counts in budgets and in orders
by shares, from 0 to 1, no unit; 0: it is free. Raise it if it should count as
well.
""",
    ),
    *cluster_ends.OPTS,
    *cluster_room.OPTS,
    cfg.FloatOpt(
        'doubt',
        default=600.0,
        min=60.0,
        advanced=True,
        help="""
Seconds after which a dispatched request may wait again if Nova shows no trace
of it: a process died while it sent the request, or a broker lost it. It does
if the queues of conductor and scheduler are empty, both listen, and Placement
has nothing of the server. It must be longer than Nova may take from a message
to a claim in Placement. Raise it if Nova takes longer; other requests do not
wait for it.
""",
    ),
    cfg.FloatOpt(
        'history',
        default=2592000.0,
        min=172800.0,
        advanced=True,
        help="""
Seconds for which requests that ended and prices of hosts are remembered; at
least 172800 (two days), by default 30 days. A thousand hosts whose prices
change all the time need four million rows in 30 days. A message that the
broker delivers again meanwhile is known, and does nothing. Lower it if the
database must stay small.
""",
    ),
    cfg.StrOpt(
        'fail_mode',
        default='hold',
        choices=[
            ('hold', 'builds wait until the service is back'),
            ('pass', 'builds start at once, as without the queue'),
        ],
        advanced=True,
        help="""
Action of the relay on new builds while the cluster service is away for longer
than ten times ``lease``, and at least a minute. It is away if no process of it
leads, or if the database does not answer. Queued requests go on waiting. Use
``pass`` if users would rather be refused than wait for an operator. The log of
the relay says when builds begin to pass, and when they are held again.
""",
    ),
    cfg.PortOpt(
        'prometheus_port',
        default=0,
        advanced=True,
        help="""
TCP port of the service's Prometheus endpoint, such as 9584, from 0 to 65535;
0: no endpoint. Its address and certificate are in ``[fairness_observe]``. Set
it to have the alerts.
""",
    ),
    cfg.PortOpt(
        'relay_prometheus_port',
        default=0,
        advanced=True,
        help="""
TCP port of the relay's Prometheus endpoint, such as 9585, from 0 to 65535; 0:
no endpoint. With the relay in the service's process, ``prometheus_port``
serves both. Set it to have the alerts.
""",
    ),
    cfg.StrOpt(
        'notification_audience',
        default='project',
        advanced=True,
        choices=[
            (
                'project',
                'members of the project whose server or request it is',
            ),
            ('operator', 'operators alone'),
        ],
        help="""
Readers of notifications about requests and servers. With ``project`` they name
no other project, no request of another project and no host, so that an event
store may show them to the project that they name. Set ``operator`` if only
programs of operators read them, and need the preemptor of each victim.
""",
    ),
    cfg.StrOpt(
        'unreadable',
        default='pass',
        choices=[
            ('pass', 'they start at once, as without the queue'),
            ('hold', 'they wait, and their reason says so'),
        ],
        advanced=True,
        help="""
Action on requests whose message cannot be read, such as one of a newer Nova.
Use ``hold`` if no request may pass the queue.
""",
    ),
    cfg.StrOpt(
        'expired_tokens',
        default='start',
        choices=[
            ('start', 'they start, as long as Keystone allows that'),
            ('refuse', 'they end, and their reason says so'),
        ],
        advanced=True,
        help="""
Action on builds whose user's token ran out while they waited. Nova can start
them for ``[token] allow_expired_window`` of Keystone (48 hours unless it is
set), if it sends service tokens: ``[service_user] send_service_user_token`` in
nova.conf. Use ``refuse`` if it does not, or they end in ERROR. A build is
never started if its token was revoked or its user is gone.
""",
    ),
]


DOMAIN = [each for each in exchange.OPTS if each.name == 'domain']


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register them, and those by which nova-api reaches the service."""
    opts.register_group(conf, GROUP, OPTS)
    opts.register_group(conf, partition.GROUP, partition.OPTS)
    opts.register_group(conf, plans.GROUP, plans.OPTS)
    opts.register_group(conf, exchange.GROUP, DOMAIN)
    opts.register_group(conf, observe.GROUP, observe.SHARED)
    transport.register_opts(conf)


def list_opts() -> Sequence[tuple[cfg.OptGroup, Sequence[cfg.Opt]]]:
    """List every option for the generator of the sample file."""
    return copy.deepcopy(
        [
            (GROUP, OPTS),
            (partition.GROUP, partition.OPTS),
            (plans.GROUP, plans.OPTS),
        ]
    )
