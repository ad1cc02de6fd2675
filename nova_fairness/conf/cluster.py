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
must have the same URL. Set it if there is more than one process: processes on
different hosts cannot share an SQLite file.
""",
    ),
    cfg.StrOpt(
        'key_file',
        default='/etc/nova-fairness/requests.keys',
        advanced=True,
        help="""
File with the keys that encrypt held messages, one key per line. The first key
encrypts; all keys decrypt. Only the owner of the file may read it. Change it
if the keys are in another file.
""",
    ),
    cfg.StrOpt(
        'broker',
        default='',
        secret=True,
        help="""
URL of the broker that Nova uses, such as ``amqp://user:password@host:5672//``.
Separate several brokers of one RabbitMQ cluster by ``;``. Set it to nova-api's
``transport_url``, with ``amqp://`` in place of ``rabbit://``.
""",
    ),
    cfg.MultiStrOpt(
        'cell_broker',
        default=[],
        secret=True,
        advanced=True,
        help="""
URL of the broker, or of the virtual host, of a further cell that does not use
``broker``. The option can be repeated. Set it for each cell with its own
broker: nova-api sends to every broker through its own ``control_exchange``, so
the relay must pass messages on there, too. No message is held there. nova-api
cannot reach a cell that is missing here.
""",
    ),
    cfg.StrOpt(
        'front_exchange',
        default='nova_front',
        advanced=True,
        help="""
Exchange to which nova-api sends its messages, and from which the relay takes
them. Change it only together with ``[DEFAULT] control_exchange`` of nova-api:
both must be equal.
""",
    ),
    cfg.StrOpt(
        'nova_exchange',
        default='nova',
        advanced=True,
        help="""
Exchange of all other services of Nova: their ``[DEFAULT] control_exchange``.
Change it if they use another exchange.
""",
    ),
    cfg.BoolOpt(
        'nova_exchange_durable',
        default=False,
        advanced=True,
        help="""
Whether Nova's exchange is durable. Set it to the value of
``[oslo_messaging_rabbit] amqp_durable_queues`` in Nova's configuration.
""",
    ),
    cfg.StrOpt(
        'cloud',
        default='',
        help="""
Entry in ``clouds.yaml`` with which the service reads and changes the cloud, as
an administrator. Empty: the environment names the entry (``OS_CLOUD``). Set it
if ``OS_CLOUD`` is not set.
""",
    ),
    cfg.StrOpt(
        'region_name',
        default='',
        advanced=True,
        help="""
Region of the cloud that the service serves. Empty: the only region, or the
first region that ``clouds.yaml`` lists. Set it if the cloud has several
regions. ``OS_REGION_NAME`` is ignored if ``cloud`` or ``OS_CLOUD`` names an
entry.
""",
    ),
    cfg.StrOpt(
        'limits_file',
        default='',
        help="""
JSON file with the guaranteed and the largest amounts of projects, by resource
class of Placement::

    {"PROJECT": {"guaranteed": {"VCPU": 40}, "ceiling": {"VCPU": 100},
                 "preemptible": {"VCPU": 200}}}

Amounts are whole numbers from 0 to 10^15. ``preemptible`` is the most that the
project's preemptible servers may have. These servers count neither for
``guaranteed`` nor for ``ceiling``. Empty: all projects share everything. Set
it to guarantee projects a part of the cloud, or to limit them.
""",
    ),
    cfg.StrOpt(
        'shares_file',
        default='',
        help="""
YAML file with the shares of accounts, which count in all orders but ``fifo``::

    accounts:
    - {name: physics, share: 70}
    - {name: PROJECT_ID, parent: physics, share: 2}
    - {name: PROJECT_ID/USER_ID, parent: PROJECT_ID, share: 3}

A share is a number from 0 to 1e9, by default 1. It is compared with the shares
of accounts that have the same parent. ``time_limit: 12h`` limits how long
servers of an account run, ``longest_wait: 3d`` how long its requests wait,
``budget: 1000`` the unit-hours that all accounts below it use in a period,
``ceiling: {VCPU: 40}`` the amounts that they have at once. ``windows`` are the
times at which their requests start. ``nominal: {VCPU: 40}`` is the amount that
an account owns, ``lending_limit`` the part of it that others may use, and
``borrowing_limit`` the amount that the account may use of theirs. Projects
that are not named are at the top of the tree with a share of 1, users below
their project. The file is read again when it changes. If it has an error, the
whole new file is ignored. Set it if projects or users are to have different
shares, limits or budgets. All processes of the service must have the same
file.
""",
    ),
    cfg.BoolOpt(
        'keystone_tree',
        default=False,
        advanced=True,
        help="""
Whether the share tree contains the domains and projects of Keystone, each
below its parent, by their IDs. ``shares_file`` and the API set their shares
and limits as before. An account that the file names without a parent has its
parent in Keystone. If not set, projects without an entry are at the top of the
tree. Set it if shares of domains or parent projects are to be divided among
the projects below them. All processes of the service must have the same value.
""",
    ),
    cfg.StrOpt(
        'order',
        default='fair_tree',
        help="""
Order of the requests that exceed the guaranteed part of their project.
``fair_tree``, ``multifactor``, ``synergy``, ``fass``, ``dominant_share``,
``admission_fair_sharing`` and ``distribution`` go by shares; ``fifo`` is first
come, first served. Other packages can add orders. Set it to ``fifo`` if the
oldest request should start first, however much its project has. All processes
of the service must have the same order.
""",
    ),
    cfg.Opt(
        'order_parameters',
        type=types.Dict(types.Float()),
        default={},
        advanced=True,
        help="""
Parameters of the order, such as ``fair_share:1000,age:100``, by name. A
parameter that is not named has its default. ``fair_tree`` has ``charge`` (0 to
1, default 1: part of a request's amounts that counts as used from its start
and while its servers run). ``multifactor`` has the weights ``fair_share``
(1000), ``age`` (100) and ``size`` (10), and ``longest_s`` (seconds, at least
1, default 604800: the age that counts in full). ``synergy`` has the weights
``vcpus`` (100) and ``memory`` (70). Weights are 0 to 1e9. ``fass`` has
``published`` (0; with 1 it has the faults of FaSS 1.4).
``admission_fair_sharing`` has ``penalty`` (0 to 1, default 0.000344: part of a
request's amounts that counts as used from its start). ``distribution`` has
``vcpus`` (0), ``memory`` (1) and ``disk`` (0), from 0 to 3: powers of the
amounts that a project has. Change them if age or size should count more or
less beside shares.
""",
    ),
    cfg.IntOpt(
        'backfill_depth',
        default=1000,
        min=0,
        advanced=True,
        help="""
Largest number of requests that are tried behind the first request that does
not fit. They start before it if they do not delay it. 0: all requests wait for
the first one. Servers of one group count as one request. Lower it if a cycle
takes too long.
""",
    ),
    cfg.FloatOpt(
        'backfill_patience',
        default=3600.0,
        min=0.0,
        advanced=True,
        help="""
Seconds for which other requests may start on hosts that are reserved for the
first request that does not fit, if their servers are expected to end in time;
by default 3600 (an hour). After that the hosts that come closest to its need
are kept for it alone. If enough servers have a time limit, room is reserved
for the time at which they reach it, and this option does not count. Lower it
if large requests should wait less even if expectations are wrong; 0: other
requests never start there. Raise it, to a day or more, if busy hosts matter
more than exact shares.
""",
    ),
    cfg.FloatOpt(
        'half_life',
        default=604800.0,
        min=60.0,
        advanced=True,
        help="""
Half-life, in seconds, of past use in orders by shares; at least 60, by default
604800 (seven days). Lower it if heavy users should be served again sooner;
raise it if shares should hold over months. Use is charged every minute, or
every hundredth of the half-life if that is shorter. All processes of the
service must have the same value.
""",
    ),
    cfg.FloatOpt(
        'interval',
        default=2.0,
        min=0.1,
        advanced=True,
        help="""
Seconds between two cycles, in which the service reads Nova and Placement; at
least 0.1. Raise it if these requests load Nova and Placement too much.
""",
    ),
    cfg.FloatOpt(
        'hosts_interval',
        default=30.0,
        min=1.0,
        advanced=True,
        help="""
Seconds between two looks at hosts; at least 1. For migration plans the service
looks at hosts, servers and live migrations. For hosts between batch and cloud
it looks at both sides. Every tenth look counts the use of each side on the
other side, too, and adjusts the shares of groups in the batch system. Slurm
applies new shares at its own times (``PriorityCalcPeriod``, usually 300 s).
Raise it if the looks load Nova or the batch system too much; lower it if
``half_life`` is only minutes.
""",
    ),
    cfg.FloatOpt(
        'lease',
        default=30.0,
        min=1.0,
        advanced=True,
        help="""
Seconds of silence of the leading process after which another process takes
over; at least 1. Lower it to continue sooner after a crash, but keep it well
above the longest cycle. ``fail_mode`` counts after ten times as long, and at
least a minute.
""",
    ),
    cfg.FloatOpt(
        'longest_wait',
        default=0.0,
        min=0.0,
        advanced=True,
        help="""
Seconds after which a waiting build expires and its servers are deleted; 0:
never. Set it if users prefer a refusal to a wait of days. An unshelve request
never expires: Nova has no way to undo it.
""",
    ),
    cfg.BoolOpt(
        'preemptible_marks',
        default=False,
        advanced=True,
        help="""
Whether users can make a request preemptible by ``fairness:preemptible=true``
in the metadata of the server or in a scheduler hint. Requests for flavors with
that extra spec are always preemptible. It is read when the request comes;
later changes have no effect. Preemptible servers run in room that others
leave. Set it if users may use idle room.
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
Amount that accounts are charged in orders by shares. ``used`` and ``larger``
need agents on all hosts and ``[DEFAULT] transport_url``. Agents measure CPU
time and memory, which are charged as ``VCPU`` and ``MEMORY_MB``. Other
classes, and users that no agent knows, are charged by allocation, and so are
all users while no agent answers. Budgets always count allocations. Set it to
``used`` if users should not pay for idle resources, and to ``larger`` if they
should pay for allocated and used resources. Five agents are asked, and the
median counts if three answer, so that a single agent cannot falsify a charge.
A charge never exceeds the use that the allocation allows. All processes of the
service must have the same value.
""",
    ),
    cfg.Opt(
        'charge_weights',
        type=types.Dict(types.Float()),
        default={},
        advanced=True,
        help="""
Weights of resource classes of Placement in orders by shares, such as
``VCPU:1,MEMORY_MB:0.5,CUSTOM_GPU:2``, by name, at least 0, no unit. The use of
a class is a part of the cloud's total amount of that class. The class with the
largest product of part and weight counts. Classes that are not named do not
count. Empty: all classes have the same weight. Set it if some classes are
scarcer than others. All processes of the service must have the same weights.
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
by shares, from 0 to 1, no unit; 0: their use is free. Raise it if users should
pay for preemptible servers, too.
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
Seconds after which a request that was sent to Nova may wait again, if Nova
shows no trace of it: a process died while it sent the request, or a broker
lost it. The request waits again if the queues of conductor and scheduler are
empty, both services listen, and Placement has no allocation of the server. The
value must be longer than the time that Nova needs from a message to a claim in
Placement. Raise it if Nova needs longer; other requests do not wait meanwhile.
""",
    ),
    cfg.FloatOpt(
        'history',
        default=2592000.0,
        min=172800.0,
        advanced=True,
        help="""
Seconds for which ended requests and prices of hosts are kept in the database;
at least 172800 (two days), by default 30 days. A thousand hosts whose prices
change all the time need four million rows in 30 days. If the broker delivers a
message a second time within these seconds, the second one has no effect. Lower
it if the database must stay small.
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
Action of the relay on new builds when the cluster service has been down for
ten times ``lease``, and at least a minute. The service is down if none of its
processes leads, or if the database does not answer. ``hold`` keeps new builds
in the queue; ``pass`` sends them to Nova at once, which refuses them if the
cloud is full. Requests that were in the queue before wait on. Use ``pass`` if
users prefer a refusal to a wait. The log of the relay says when builds begin
to pass, and when they are held again.
""",
    ),
    cfg.PortOpt(
        'prometheus_port',
        default=0,
        advanced=True,
        help="""
TCP port of the service's Prometheus endpoint, such as 9584, from 0 to 65535;
0: no endpoint. Its address and certificate are in ``[fairness_observe]``. Set
it if Prometheus is to watch the service and send alerts.
""",
    ),
    cfg.PortOpt(
        'relay_prometheus_port',
        default=0,
        advanced=True,
        help="""
TCP port of the relay's Prometheus endpoint, such as 9585, from 0 to 65535; 0:
no endpoint. If the relay runs in the service's process, ``prometheus_port``
serves both. Set it if Prometheus is to watch the relay and send alerts.
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
Readers of notifications about requests and servers. With ``project`` a
notification names no other project, no request of another project and no host,
so that an event store may show it to its project. Set it to ``operator`` if
only programs of operators read notifications and need the preemptor of each
victim.
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
Action on builds whose token expired while they waited. Nova can start such
builds for ``[token] allow_expired_window`` of Keystone (48 hours by default)
if Nova sends service tokens: ``[service_user] send_service_user_token`` in
nova.conf. Use ``refuse`` if Nova does not send them; otherwise these builds
end in ERROR. A build is never started if its token was revoked or its user was
deleted.
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
