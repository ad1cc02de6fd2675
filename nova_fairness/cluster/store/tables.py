# SPDX-License-Identifier: Apache-2.0

"""Definitions of the tables of the store.

Each row is written by one statement that names the state that it expects, so
that a process that is stopped during its work does not leave a lock.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

METADATA = sa.MetaData()

_MYSQL: dict[str, Any] = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4'}
_BYTES = sa.LargeBinary().with_variant(mysql.LONGBLOB(), 'mysql', 'mariadb')
# MariaDB treats names that differ only in case or accents as equal.
_NAME = sa.String(255).with_variant(
    mysql.VARCHAR(255, collation='utf8mb4_bin'), 'mysql', 'mariadb'
)
_TEXT = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')

CASTS = sa.Table(
    'casts',
    METADATA,
    sa.Column('uuid', sa.String(64), primary_key=True),
    sa.Column('method', sa.String(64), nullable=False),
    sa.Column('received_at', sa.Double, nullable=False),
    # NULL once the message is not needed: the row stays, so that a second
    # delivery by the broker is recognized.
    sa.Column('sealed', _BYTES),
    # An index needs this column: few of many rows are kept. PostgreSQL cannot
    # index a column that it does not store.
    sa.Column(
        'kept', sa.Boolean, sa.Computed('sealed IS NOT NULL', persisted=True)
    ),
    sa.Index('ix_casts_kept', 'kept', 'received_at'),
    **_MYSQL,
)

REQUESTS = sa.Table(
    'requests',
    METADATA,
    sa.Column('uuid', sa.String(36), primary_key=True),
    sa.Column('cast_uuid', sa.String(64), nullable=False, unique=True),
    sa.Column('project', sa.String(255), nullable=False),
    sa.Column('owner', sa.String(255), nullable=False),
    sa.Column('asked_at', sa.Double, nullable=False),
    sa.Column('expires_at', sa.Double),
    sa.Column('origin', sa.String(64), nullable=False),
    # JSON: servers, their names, demand and group. Searches for a server use
    # SERVERS.
    sa.Column('wanted', _TEXT, nullable=False),
    sa.Column('state', sa.String(16), nullable=False),
    sa.Column('version', sa.Integer, nullable=False),
    sa.Column('changed_at', sa.Double, nullable=False),
    sa.Column('reason', sa.String(64), nullable=False),
    sa.Column('subject', sa.String(255), nullable=False),
    sa.Column('numbers', sa.Text, nullable=False),
    # JSON: names of hosts, one per server, once it was sent; empty before.
    sa.Column('hosts', sa.Text, nullable=False),
    sa.Column('band', sa.String(16), nullable=False),
    sa.Column('time_limit_s', sa.Double),
    sa.Column('extended_s', sa.Double, nullable=False),
    # How its preemptible servers make room, if the owner chose that.
    sa.Column('leaves_by', sa.String(32)),
    # JSON: reserved hosts, and servers that are evicted for that.
    sa.Column('room', _TEXT),
    # Role of the holder, since when and why; NULL without a hold.
    sa.Column('held_by', sa.String(16)),
    sa.Column('held_at', sa.Double),
    sa.Column('held_why', sa.String(255)),
    # Number among requests that operators put before all others.
    sa.Column('first_turn', sa.Integer),
    # Number of past events, and begin of the current one.
    sa.Column('stage', sa.Integer, nullable=False),
    sa.Column('stage_at', sa.Double, nullable=False),
    # NULL if the request needs no room.
    sa.Column('flavor', _NAME),
    # NULL until it is sent to Nova: when it was sent, and its wait.
    sa.Column('sent_at', sa.Double),
    sa.Column('waited_s', sa.Double),
    sa.Index('ix_requests_state_changed_at', 'state', 'changed_at'),
    sa.Index('ix_requests_sent_at', 'sent_at'),
    sa.Index('ix_requests_asked_at', 'asked_at', 'uuid'),
    sa.Index('ix_requests_state_asked_at', 'state', 'asked_at', 'uuid'),
    sa.Index('ix_requests_project_asked_at', 'project', 'asked_at', 'uuid'),
    **_MYSQL,
)

SERVERS = sa.Table(
    'servers',
    METADATA,
    sa.Column('server', sa.String(36), primary_key=True),
    sa.Column('request', sa.String(36), primary_key=True),
    sa.Index('ix_servers_request', 'request'),
    **_MYSQL,
)
"""One row per request and server whose UUID is not that of the request."""

EVENTS = sa.Table(
    'events',
    METADATA,
    sa.Column('request', sa.String(36), primary_key=True),
    sa.Column('stage', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('at', sa.Double, nullable=False),
    sa.Column('until', sa.Double, nullable=False),
    sa.Column('state', sa.String(16), nullable=False),
    sa.Column('reason', sa.String(64), nullable=False),
    sa.Column('subject', sa.String(255), nullable=False),
    sa.Column('numbers', sa.Text, nullable=False),
    # JSON as in the request; NULL if it is too long.
    sa.Column('hosts', sa.String(255)),
    **_MYSQL,
)
"""One row per past event of a request: its state and reason then. The current
event is the row of the request itself.
"""

WAITS = sa.Table(
    'waits',
    METADATA,
    sa.Column('request', sa.String(36), primary_key=True),
    sa.Column('reason', sa.String(64), primary_key=True),
    # Copied from the request: so one index serves the whole query.
    sa.Column('project', sa.String(255), nullable=False),
    sa.Column('sent_at', sa.Double, nullable=False),
    sa.Column('wait_s', sa.Double, nullable=False),
    sa.Index('ix_waits_reason', 'reason', 'wait_s', 'sent_at'),
    sa.Index('ix_waits_project', 'project', 'reason', 'wait_s', 'sent_at'),
    **_MYSQL,
)
"""One row per sent request and reason for which it waited, with the sum of
seconds over its events. Written once, because computing the sum at each query
is too slow.
"""

LEAVES = sa.Table(
    'leaves',
    METADATA,
    sa.Column('uuid', sa.String(36), primary_key=True),
    sa.Column('server', sa.String(36), nullable=False),
    sa.Column('turn', sa.Integer, nullable=False),
    sa.Column('project', sa.String(255), nullable=False),
    sa.Column('owner', sa.String(255), nullable=False),
    sa.Column('cause', sa.String(32), nullable=False),
    # Names of actions, separated by commas.
    sa.Column('actions', sa.String(255), nullable=False),
    sa.Column('at', sa.Double, nullable=False),
    sa.Column('changed_at', sa.Double, nullable=False),
    sa.Column('tried', sa.Integer, nullable=False),
    sa.Column('state', sa.String(16), nullable=False),
    sa.Column('version', sa.Integer, nullable=False),
    sa.Column('reason', sa.String(64), nullable=False),
    sa.Column('subject', sa.String(255), nullable=False),
    sa.Column('numbers', sa.Text, nullable=False),
    # The preemptor, for evictions that make room.
    sa.Column('request', sa.String(36)),
    sa.Column('asked_at', sa.Double),
    sa.Column('vcpus', sa.Integer, nullable=False),
    sa.Column('began_at', sa.Double),
    sa.Column('chosen_at', sa.Double, nullable=False),
    sa.Column('told_at', sa.Double),
    sa.Column('acted_at', sa.Double),
    sa.Column('gone_at', sa.Double),
    sa.Column('returned_at', sa.Double),
    sa.Index('ix_leaves_state_changed_at', 'state', 'changed_at'),
    sa.Index('ix_leaves_server_turn', 'server', 'turn'),
    sa.Index('ix_leaves_chosen_at', 'chosen_at'),
    **_MYSQL,
)
"""One row for each eviction of a server.

State and outcome are in one row, so that one statement writes both. A server
has one live eviction at a time: server and turn are the key, and a turn begins
after the previous one ended.
"""

RISKS = sa.Table(
    'risks',
    METADATA,
    sa.Column('server', sa.String(36), primary_key=True),
    sa.Column('project', sa.String(255), nullable=False),
    sa.Column('owner', sa.String(255), nullable=False),
    sa.Column('state', sa.String(16), nullable=False),
    sa.Column('since', sa.Double, nullable=False),
    sa.Column('changed_at', sa.Double, nullable=False),
    # Whether metadata of the server have the same state.
    sa.Column('is_written', sa.Boolean, nullable=False),
    sa.Column('reason', sa.String(64), nullable=False),
    sa.Column('subject', sa.String(255), nullable=False),
    sa.Column('numbers', sa.Text, nullable=False),
    **_MYSQL,
)
"""One row for each warned server, until some time after the warning is
withdrawn.
"""

LEDGER = sa.Table(
    'ledger',
    METADATA,
    sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('version', sa.Integer, nullable=False),
    sa.Column('at', sa.Double, nullable=False),
    # JSON: parts of the cloud by account and class.
    sa.Column('used', _TEXT, nullable=False),
    # Begin of the period of budgets; JSON: its unit-seconds by account.
    sa.Column('since', sa.Double, nullable=False),
    sa.Column('spent', _TEXT, nullable=False),
    **_MYSQL,
)
"""One row, changed as a whole: all use is charged up to one time."""

CHARGES = sa.Table(
    'charges',
    METADATA,
    # Version of the ledger after this charge.
    sa.Column('version', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('begins', sa.Double, nullable=False),
    sa.Column('ends', sa.Double, nullable=False),
    # JSON: capacity of the cloud by class.
    sa.Column('capacity', sa.Text, nullable=False),
    # JSON: amounts by account and class, of accounts whose amounts differ from
    # the row before.
    sa.Column('changed', _TEXT, nullable=False),
    # JSON: content of the ledger at the begin, by account and class; then all
    # accounts are in ``changed``. NULL if the row continues the one before.
    sa.Column('opening', _TEXT),
    **_MYSQL,
)
"""One row for each charge of the ledger."""

SHARES = sa.Table(
    'shares',
    METADATA,
    sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('version', sa.Integer, nullable=False),
    **_MYSQL,
)
"""One row: number of changes of account settings."""

SETTINGS = sa.Table(
    'account_settings',
    METADATA,
    # A digest: databases treat some different names as equal.
    sa.Column('key', sa.String(64), primary_key=True),
    sa.Column('account', sa.Text, nullable=False),
    # JSON: settings by field.
    sa.Column('given', _TEXT, nullable=False),
    **_MYSQL,
)
"""One row for each account with settings."""

PROMISES = sa.Table(
    'promises',
    METADATA,
    sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('version', sa.Integer, nullable=False),
    # JSON: promised starts by UUID, and the last outcomes.
    sa.Column('kept', _TEXT, nullable=False),
    **_MYSQL,
)
"""One row, changed as a whole."""

NODES = sa.Table(
    'nodes',
    METADATA,
    sa.Column('host', _NAME, primary_key=True),
    # Names in the batch system and in the cloud.
    sa.Column('batch', sa.String(255), nullable=False),
    sa.Column('cloud', sa.String(255), nullable=False),
    sa.Column('cores', sa.Double, nullable=False),
    sa.Column('state', sa.String(16), nullable=False),
    sa.Column('since', sa.Double, nullable=False),
    sa.Column('until', sa.Double),
    sa.Column('version', sa.Integer, nullable=False),
    # JSON: time, event, state, cause and text of the newest steps.
    sa.Column('history', _TEXT, nullable=False),
    **_MYSQL,
)
"""One row per host between batch system and cloud."""

BORDER = sa.Table(
    'border',
    METADATA,
    sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('version', sa.Integer, nullable=False),
    # Hosts that the cloud is to have; NULL if calendar and demand decide.
    sa.Column('hosts', sa.Integer),
    **_MYSQL,
)
"""One row, changed as a whole."""

MARKET = sa.Table(
    'market',
    METADATA,
    sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('version', sa.Integer, nullable=False),
    **_MYSQL,
)
"""One row: number of changes of the market."""

TRADES = sa.Table(
    'trades',
    METADATA,
    # A digest: databases treat some different names as equal.
    sa.Column('key', sa.String(64), primary_key=True),
    sa.Column('project', sa.Text, nullable=False),
    # JSON: groups, units spent by account, and charged CPU time of servers:
    # together, so that they always fit.
    sa.Column('kept', _TEXT, nullable=False),
    **_MYSQL,
)
"""One row for each project that has groups or was charged: its size depends on
that project alone.
"""

PRICES = sa.Table(
    'prices',
    METADATA,
    sa.Column('host', _NAME, primary_key=True),
    sa.Column('resource_class', _NAME, primary_key=True),
    sa.Column('at', sa.Double, primary_key=True, autoincrement=False),
    sa.Column('price', sa.Double, nullable=False),
    sa.Column('capacity', sa.Double, nullable=False),
    sa.Index('ix_prices_at', 'at'),
    **_MYSQL,
)
"""One row for each change of the price of a host."""

PLANS = sa.Table(
    'plans',
    METADATA,
    sa.Column('uuid', sa.String(36), primary_key=True),
    sa.Column('goal', sa.String(16), nullable=False),
    # UUID of the request, or name of the host, that the plan serves.
    sa.Column('subject', sa.String(255), nullable=False),
    sa.Column('state', sa.String(16), nullable=False),
    # Few of many stored plans are open.
    sa.Column('is_open', sa.Boolean, nullable=False),
    sa.Column('made_at', sa.Double, nullable=False),
    sa.Column('changed_at', sa.Double, nullable=False),
    sa.Column('until', sa.Double, nullable=False),
    sa.Column('cause', sa.String(32), nullable=False),
    sa.Column('explanation', sa.Text, nullable=False),
    # JSON: all fields of the moves, in their order.
    sa.Column('moves', _TEXT, nullable=False),
    # JSON: names of hosts.
    sa.Column('empties', _TEXT, nullable=False),
    # JSON: numbers by name, before and after the moves.
    sa.Column('promised', sa.Text, nullable=False),
    sa.Column('won', sa.Text),
    sa.Column('version', sa.Integer, nullable=False),
    # JSON: servers that stay where they are, and why.
    sa.Column('stays', _TEXT, nullable=False),
    sa.Index('ix_plans_is_open', 'is_open'),
    sa.Index('ix_plans_made_at', 'made_at', 'uuid'),
    **_MYSQL,
)
"""One row per migration plan, changed as a whole: a plan always has its moves.
"""

PLEDGES = sa.Table(
    'pledges',
    METADATA,
    sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('version', sa.Integer, nullable=False),
    # JSON: time, use by account, and shares of the batch system as found and
    # as written: together, so that a restore never takes a written share for a
    # found one.
    sa.Column('kept', _TEXT, nullable=False),
    **_MYSQL,
)
"""One row, changed as a whole."""

ONLY: dict[str, dict[str, Any]] = {
    'ledger': {
        'version': 0,
        'at': 0.0,
        'used': '{}',
        'since': 0.0,
        'spent': '{}',
    },
    'shares': {'version': 0},
    'promises': {'version': 0, 'kept': '{"promises":{},"past":[]}'},
    'border': {'version': 0, 'hosts': None},
    'market': {'version': 0},
    'pledges': {
        'version': 0,
        'kept': '{"at":0.0,"use":{},"found":{},"given":{}}',
    },
}
"""First content of each table that has one row, by name of the table."""

LEADERS = sa.Table(
    'leaders',
    METADATA,
    sa.Column('epoch', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('holder', sa.String(255), nullable=False),
    sa.Column('since', sa.Double, nullable=False),
    **_MYSQL,
)
"""One row per epoch; the largest epoch leads.

A takeover is an insert: if two processes try at once, the key allows only one.
"""


_TOLD = ('reason', 'subject', 'numbers', 'stage', 'stage_at')


def newest_epoch() -> sa.ScalarSelect[Any]:
    """Return the epoch of the leader, as a subquery."""
    return sa.select(sa.func.max(LEADERS.c.epoch)).scalar_subquery()


def update_if_unchanged(
    uuid: object, state: object, version: object, epoch: int
) -> sa.Update:
    """Return a statement that changes a request only if it is unchanged and
    the leader still leads.
    """
    return sa.update(REQUESTS).where(
        REQUESTS.c.uuid == uuid,
        REQUESTS.c.state == state,
        REQUESTS.c.version == version,
        newest_epoch() == epoch,
    )


def update_reasons(epoch: int) -> sa.Update:
    """Return a statement that writes reasons; each row of parameters names a
    request.
    """

    def parameter(name: str) -> sa.BindParameter[Any]:
        """Return a bound parameter with a name."""
        return sa.bindparam(name)

    return update_if_unchanged(
        parameter('its_uuid'),
        parameter('its_state'),
        parameter('its_version'),
        epoch,
    ).values({name: parameter(name) for name in _TOLD})
