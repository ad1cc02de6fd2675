# SPDX-License-Identifier: Apache-2.0

"""Options of the relay and the cluster service: ``[fairness_cluster]``."""

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
    title='The queue of requests',
    help="""
Options of the relay, which receives the messages of nova-api before Nova's
conductor does, and of the cluster service, which decides which request starts
next. Both need the extra ``cluster`` of this package.
""",
)

CONFIG_FILE = pathlib.Path('/etc/nova-fairness/nova-fairness-cluster.conf')
"""Default configuration file of the programs of the queue."""

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
URL of the message broker that Nova uses, such as
``amqp://user:password@host:5672//``. Separate several brokers of one RabbitMQ
cluster by ``;``. Set it to nova-api's ``transport_url``, with ``amqp://`` in
place of ``rabbit://``.
""",
    ),
    cfg.MultiStrOpt(
        'cell_broker',
        default=[],
        secret=True,
        advanced=True,
        help="""
URL of the message broker, or of the virtual host, of a further Nova cell that
does not use ``broker``. The option can be repeated. Set it for each cell with
its own broker. nova-api uses its ``control_exchange`` on every broker, so the
relay must forward messages on each broker. The relay holds no message of these
brokers. nova-api cannot reach a cell whose broker is missing here.
""",
    ),
    cfg.StrOpt(
        'front_exchange',
        default='nova_front',
        advanced=True,
        help="""
Exchange to which nova-api sends its messages, and from which the relay reads
them. Change it only together with ``[DEFAULT] control_exchange`` of nova-api:
both must be equal.
""",
    ),
    cfg.StrOpt(
        'nova_exchange',
        default='nova',
        advanced=True,
        help="""
Exchange of all services of Nova except nova-api: their ``[DEFAULT]
control_exchange``. Change it if they use another exchange.
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
Entry in ``clouds.yaml`` with the administrator's credentials for this cloud.
Empty: the environment variable ``OS_CLOUD`` names the entry. Set it if
``OS_CLOUD`` is not set.
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

Amounts are whole numbers from 0 to 10^15. ``preemptible`` limits the sum of
the project's preemptible servers, which count neither for ``guaranteed`` nor
for ``ceiling``. Empty: no project has a guaranteed amount or a limit. Set it
to guarantee projects a part of the cloud, or to limit them.
""",
    ),
    cfg.StrOpt(
        'shares_file',
        default='',
        help="""
YAML file with the shares of accounts. All orders except ``fifo`` use them::

    accounts:
    - {name: physics, share: 70}
    - {name: PROJECT_ID, parent: physics, share: 2}
    - {name: PROJECT_ID/USER_ID, parent: PROJECT_ID, share: 3}

A share is a number from 0 to 1e9, by default 1. It is compared with the shares
of accounts that have the same parent. ``time_limit: 12h`` limits how long
servers of an account run, ``longest_wait: 3d`` how long its requests wait.
``budget: 1000`` limits the unit-hours that the account and all accounts below
it use in a period, ``ceiling: {VCPU: 40}`` the amounts that they use at the
same time. ``windows`` are the times at which their requests may start.
``nominal: {VCPU: 40}`` is the amount that an account owns, ``lending_limit``
the part of it that other accounts may use, and ``borrowing_limit`` the amount
that the account may use of other accounts. Projects that the file does not
name are at the top of the tree with a share of 1, users below their project.
The file is read again when it changes. If it has an error, the whole new file
is ignored. Set it if projects or users are to have different shares, limits or
budgets. All processes of the service must have the same file.
""",
    ),
    cfg.BoolOpt(
        'keystone_tree',
        default=False,
        advanced=True,
        help="""
Whether the share tree contains the domains and projects of Keystone, each
below its parent, by their IDs. ``shares_file`` and the API still set shares
and limits. An account without a parent in the file has its parent in Keystone.
If not set, projects without an entry in the file are at the top of the tree.
Set it if the share of a domain or parent project is to be divided among the
projects below it. All processes of the service must have the same value.
""",
    ),
    cfg.StrOpt(
        'order',
        default='fair_tree',
        help="""
Order in which requests are tried if they exceed the guaranteed amount of their
project. ``fair_tree``, ``multifactor``, ``synergy``, ``fass``,
``dominant_share``, ``admission_fair_sharing`` and ``distribution`` use shares;
``fifo`` is first come, first served. Other packages can add orders. Set it to
``fifo`` if the oldest request should start first, regardless of the use of its
project. All processes of the service must have the same order.
""",
    ),
    cfg.Opt(
        'order_parameters',
        type=types.Dict(types.Float()),
        default={},
        advanced=True,
        help="""
Parameters of the order, such as ``fair_share:1000,age:100``, by name. A
missing parameter has its default. ``fair_tree`` has ``charge`` (0 to 1,
default 1: part of a request's amounts that counts as used from its start and
while its servers run). ``multifactor`` has the weights ``fair_share``
(1000), ``age`` (100) and ``size`` (10), and ``longest_s`` (seconds, at least
1, default 604800: the age that counts in full). ``synergy`` has the weights
``vcpus`` (100) and ``memory`` (70). Weights are 0 to 1e9. ``fass`` has
``published`` (0; with 1 it has the faults of FaSS 1.4).
``admission_fair_sharing`` has ``penalty`` (0 to 1, default 0.000344: part of a
request's amounts that counts as used from its start). ``distribution`` has
``vcpus`` (0), ``memory`` (1) and ``disk`` (0), from 0 to 3: exponents of the
amounts that a project uses. Change them if age or size should count more or
less in comparison with shares.
""",
    ),
    cfg.IntOpt(
        'backfill_depth',
        default=1000,
        min=0,
        advanced=True,
        help="""
Largest number of requests that are tried after the first request that does not
fit. Such a request starts early only if it does not delay the first one
(backfill). 0: no backfill. Servers of one group count as one request. Lower it
if a cycle takes too long.
""",
    ),
    cfg.FloatOpt(
        'backfill_patience',
        default=3600.0,
        min=0.0,
        advanced=True,
        help="""
Seconds for which other requests may start on hosts that are reserved for the
first request that does not fit; by default 3600 (an hour). Only requests whose
servers are expected to end in time may do so. After these seconds the hosts
with the most suitable room are reserved for the first request alone. If
servers with a time limit will free enough room, that time is reserved, and
this option has no effect. Lower it if large requests should start sooner even
if expectations are wrong; 0: other requests never start on reserved hosts.
Raise it, to a day or more, if busy hosts matter more than exact shares.
""",
    ),
    cfg.FloatOpt(
        'half_life',
        default=604800.0,
        min=60.0,
        advanced=True,
        help="""
Half-life, in seconds, of past use in orders that use shares; at least 60, by
default 604800 (seven days). Past use counts half after this time. Lower it if
heavy users should be served again sooner; raise it if shares should be met
over months. Use is charged every minute, or every hundredth of the half-life
if that is shorter. All processes of the service must have the same value.
""",
    ),
    cfg.FloatOpt(
        'interval',
        default=2.0,
        min=0.1,
        advanced=True,
        help="""
Seconds from one cycle of the service to the next, at least 0.1. In each cycle
the service reads Nova and Placement. Raise it if these API calls load Nova and
Placement too much.
""",
    ),
    cfg.FloatOpt(
        'hosts_interval',
        default=30.0,
        min=1.0,
        advanced=True,
        help="""
Seconds from one inspection of hosts to the next; at least 1. For migration
plans the service reads hosts, servers and live migrations. For hosts that move
between batch system and cloud, it reads both systems. Every tenth inspection
also adds the use in one system to the account in the other one, and adjusts
the shares of groups in the batch system. Slurm applies new shares at its own
times (``PriorityCalcPeriod``, usually 300 s). Raise it if inspections load
Nova or the batch system too much; lower it if ``half_life`` is only minutes.
""",
    ),
    cfg.FloatOpt(
        'lease',
        default=30.0,
        min=1.0,
        advanced=True,
        help="""
Seconds without a sign of life of the leading process after which another
process becomes the leader; at least 1. Lower it to continue sooner after a
crash, but keep it well above the longest cycle. ``fail_mode`` applies after
ten times this value, and at least a minute.
""",
    ),
    cfg.FloatOpt(
        'longest_wait',
        default=0.0,
        min=0.0,
        advanced=True,
        help="""
Seconds after which a waiting build request expires and its servers are
deleted; 0: never. Set it if users prefer a refusal to a wait of days. An
unshelve request never expires: Nova cannot undo it.
""",
    ),
    cfg.BoolOpt(
        'preemptible_marks',
        default=False,
        advanced=True,
        help="""
Whether users can make a request preemptible by ``fairness:preemptible=true``
in the metadata of the server or in a scheduler hint. Requests for flavors with
that extra spec are always preemptible. The mark is read when the request
arrives; later changes have no effect. Preemptible servers use capacity that
other users do not need, and are evicted when they need it. Set it if users may
use idle capacity.
""",
    ),
    cfg.ListOpt(
        'preemptible_projects',
        default=[],
        advanced=True,
        help="""
IDs of projects whose requests are all preemptible, with or without a mark,
separated by commas. Set it for projects that may use only capacity that other
projects do not need.
""",
    ),
    cfg.StrOpt(
        'charge',
        default='allocated',
        choices=[
            ('allocated', 'amounts that accounts allocated in Placement'),
            ('used', 'use that agents measured'),
            ('larger', 'the larger of both, in each resource class'),
        ],
        advanced=True,
        help="""
Amount that accounts are charged in orders that use shares. ``used`` and
``larger`` need agents on all hosts and ``[DEFAULT] transport_url``. Agents
measure CPU time and memory, which are charged as ``VCPU`` and ``MEMORY_MB``.
Other resource classes, and users without measurements, are charged by
allocation. The same holds for all users while no agent answers. Budgets always
count allocations. Set it to ``used`` if users should not pay for idle
resources, and to ``larger`` if they should pay for allocated and used
resources. The service queries five agents and uses the median of at least
three answers, so that a single agent cannot falsify a charge. A charge never
exceeds the use that the allocation permits. All processes of the service must
have the same value.
""",
    ),
    cfg.Opt(
        'charge_weights',
        type=types.Dict(types.Float()),
        default={},
        advanced=True,
        help="""
Weights of resource classes of Placement in orders that use shares, such as
``VCPU:1,MEMORY_MB:0.5,CUSTOM_GPU:2``, by name, at least 0, no unit. The use of
a class is a part of the cloud's total amount of that class. An account is
charged for the class whose product of part and weight is largest. Classes
without a weight do not count. Empty: all classes have the same weight. Set it
if some classes are scarcer than others. All processes of the service must have
the same weights.
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
that use shares, from 0 to 1, no unit; 0: their use is free. Raise it if users
should pay for preemptible servers, too.
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
Seconds until a request that was sent to Nova may return to the queue, if Nova
shows no trace of it. This happens when a process dies while it sends the
request, or when a broker loses the message. The request returns to the queue
if the message queues of conductor and scheduler are empty, both services are
connected, and Placement has no allocation of the server. The value must be
longer than the time from the message to the allocation in Placement. Raise it
if Nova needs longer; other requests do not wait meanwhile.
""",
    ),
    cfg.FloatOpt(
        'history',
        default=2592000.0,
        min=172800.0,
        advanced=True,
        help="""
Seconds for which ended requests and prices of hosts are stored in the
database; at least 172800 (two days), by default 30 days. A thousand hosts
whose prices change all the time need four million rows in 30 days. A message
that the broker delivers a second time within these seconds has no effect.
Lower it if the database must stay small.
""",
    ),
    cfg.StrOpt(
        'fail_mode',
        default='hold',
        choices=[
            ('hold', 'new builds wait until the service runs again'),
            ('pass', 'new builds go to Nova at once, without the queue'),
        ],
        advanced=True,
        help="""
Action of the relay on new builds when the cluster service has been down for
ten times ``lease``, and at least a minute. The service is down if none of its
processes is the leader, or if the database does not answer. ``hold`` stores
new builds in the queue; ``pass`` sends them to Nova at once, which refuses
them if the cloud is full. Requests that are already in the queue continue to
wait. Use ``pass`` if users prefer a refusal to a wait. The log of the relay
reports when it begins to pass builds, and when it holds them again.
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
                'members of the project that owns the server or request',
            ),
            ('operator', 'operators only'),
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
            ('pass', 'the request goes to Nova at once, without the queue'),
            ('hold', 'the request waits, with the reason ``unreadable``'),
        ],
        advanced=True,
        help="""
Action on requests whose message cannot be parsed, for example a message of a
newer Nova. Use ``hold`` if no request may bypass the queue.
""",
    ),
    cfg.StrOpt(
        'expired_tokens',
        default='start',
        choices=[
            ('start', 'the build starts, as long as Keystone permits it'),
            ('refuse', 'the build ends, with the reason ``token_refused``'),
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
    """Register the options of the queue, and those that connect nova-api to
    the service.
    """
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
