# SPDX-License-Identifier: Apache-2.0

"""The tables of the store.

Every row is written by one statement that says in which state it may be, so
that a process which is stopped in the middle holds no lock.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

METADATA = sa.MetaData()

_MYSQL: dict[str, Any] = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4'}
_BYTES = sa.LargeBinary().with_variant(mysql.LONGBLOB(), 'mysql', 'mariadb')
# MariaDB takes names for the same that differ in case or accents only.
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
    # NULL once nobody needs it: the row stays, so that a message which the
    # broker delivers again is known.
    sa.Column('sealed', _BYTES),
    # Few are kept of many that are remembered: it is in an index. PostgreSQL
    # makes no index of a column that it does not store.
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
    # JSON: servers, their names, demand and group. Servers are looked for in
    # SERVERS.
    sa.Column('wanted', _TEXT, nullable=False),
    sa.Column('state', sa.String(16), nullable=False),
    sa.Column('version', sa.Integer, nullable=False),
    sa.Column('changed_at', sa.Double, nullable=False),
    sa.Column('reason', sa.String(64), nullable=False),
    sa.Column('subject', sa.String(255), nullable=False),
    sa.Column('numbers', sa.Text, nullable=False),
    # JSON: names, one per server, once it was sent; before that none.
    sa.Column('hosts', sa.Text, nullable=False),
    sa.Column('band', sa.String(16), nullable=False),
    sa.Column('time_limit_s', sa.Double),
    sa.Column('extended_s', sa.Double, nullable=False),
    # Of those whose owners said how they want to make room.
    sa.Column('leaves_by', sa.String(32)),
    # JSON: hosts that are promised, and who leaves for that.
    sa.Column('room', _TEXT),
    # Role of who holds it back, since when and why; NULL of all others.
    sa.Column('held_by', sa.String(16)),
    sa.Column('held_at', sa.Double),
    sa.Column('held_why', sa.String(255)),
    # Number among those that operators put before all others.
    sa.Column('first_turn', sa.Integer),
    # Number of events before, and since when state and reason are as they
    # are.
    sa.Column('stage', sa.Integer, nullable=False),
    sa.Column('stage_at', sa.Double, nullable=False),
    # NULL of those that have no room to wait for.
    sa.Column('flavor', _NAME),
    # NULL until it is sent to Nova: when that was, and how long it waited.
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
"""One row per request and server that has another UUID than the request."""

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
    # JSON as in the request; NULL if it is longer.
    sa.Column('hosts', sa.String(255)),
    **_MYSQL,
)
"""One row per event of a request that is over: state and reason as the request
had them. The event that lasts is the row of the request itself."""

WAITS = sa.Table(
    'waits',
    METADATA,
    sa.Column('request', sa.String(36), primary_key=True),
    sa.Column('reason', sa.String(64), primary_key=True),
    # As in the request: one index then has all that is asked for.
    sa.Column('project', sa.String(255), nullable=False),
    sa.Column('sent_at', sa.Double, nullable=False),
    sa.Column('wait_s', sa.Double, nullable=False),
    sa.Index('ix_waits_reason', 'reason', 'wait_s', 'sent_at'),
    sa.Index('ix_waits_project', 'project', 'reason', 'wait_s', 'sent_at'),
    **_MYSQL,
)
"""One row per request that was sent to Nova and reason for which it waited, in
seconds of all its events. Written once: to add up events takes too long."""

LEAVES = sa.Table(
    'leaves',
    METADATA,
    sa.Column('uuid', sa.String(36), primary_key=True),
    sa.Column('server', sa.String(36), nullable=False),
    sa.Column('turn', sa.Integer, nullable=False),
    sa.Column('project', sa.String(255), nullable=False),
    sa.Column('owner', sa.String(255), nullable=False),
    sa.Column('cause', sa.String(32), nullable=False),
    # Words, with commas between them.
    sa.Column('actions', sa.String(255), nullable=False),
    sa.Column('at', sa.Double, nullable=False),
    sa.Column('changed_at', sa.Double, nullable=False),
    sa.Column('tried', sa.Integer, nullable=False),
    sa.Column('state', sa.String(16), nullable=False),
    sa.Column('version', sa.Integer, nullable=False),
    sa.Column('reason', sa.String(64), nullable=False),
    sa.Column('subject', sa.String(255), nullable=False),
    sa.Column('numbers', sa.Text, nullable=False),
    # Of who makes room for a request.
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
"""One row for each time that a server was to leave.

How far it has left and how that ended are one row, so that one statement
writes both. It leaves for one reason at a time: the key is made of the server
and its turn, and a turn begins when the one before has ended.
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
    # Whether metadata of the server say the same.
    sa.Column('is_written', sa.Boolean, nullable=False),
    sa.Column('reason', sa.String(64), nullable=False),
    sa.Column('subject', sa.String(255), nullable=False),
    sa.Column('numbers', sa.Text, nullable=False),
    **_MYSQL,
)
"""One row for each server that is told that it is among the next to leave,
until some time after it is told that it is not."""

LEDGER = sa.Table(
    'ledger',
    METADATA,
    sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('version', sa.Integer, nullable=False),
    sa.Column('at', sa.Double, nullable=False),
    # JSON: parts of the cloud by account and class.
    sa.Column('used', _TEXT, nullable=False),
    # Of the period of budgets that began then; JSON: unit-seconds by account.
    sa.Column('since', sa.Double, nullable=False),
    sa.Column('spent', _TEXT, nullable=False),
    **_MYSQL,
)
"""One row, changed as a whole: all is charged up to one moment, or nothing."""

CHARGES = sa.Table(
    'charges',
    METADATA,
    # That the ledger got by it.
    sa.Column('version', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('begins', sa.Double, nullable=False),
    sa.Column('ends', sa.Double, nullable=False),
    # JSON: of the cloud by class.
    sa.Column('capacity', sa.Text, nullable=False),
    # JSON: amounts by account and class, of accounts that have others than
    # in the row before.
    sa.Column('changed', _TEXT, nullable=False),
    # JSON: what the ledger had at the begin, by account and class; then all
    # accounts are in ``changed``. NULL where the row goes on from another.
    sa.Column('opening', _TEXT),
    **_MYSQL,
)
"""One row for each time that the ledger was moved forward."""

SHARES = sa.Table(
    'shares',
    METADATA,
    sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('version', sa.Integer, nullable=False),
    **_MYSQL,
)
"""One row: how often what was set of accounts was changed."""

SETTINGS = sa.Table(
    'account_settings',
    METADATA,
    # A digest: databases do not tell all names apart.
    sa.Column('key', sa.String(64), primary_key=True),
    sa.Column('account', sa.Text, nullable=False),
    # JSON: what was set, by field.
    sa.Column('given', _TEXT, nullable=False),
    **_MYSQL,
)
"""One row for each account with settings."""

PROMISES = sa.Table(
    'promises',
    METADATA,
    sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('version', sa.Integer, nullable=False),
    # JSON: promises by UUID, and what became of the last ones.
    sa.Column('kept', _TEXT, nullable=False),
    **_MYSQL,
)
"""One row, changed as a whole."""

NODES = sa.Table(
    'nodes',
    METADATA,
    sa.Column('host', _NAME, primary_key=True),
    # Its names on both sides.
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
"""One row per host between batch and cloud."""

BORDER = sa.Table(
    'border',
    METADATA,
    sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('version', sa.Integer, nullable=False),
    # That the cloud is to have; NULL to go by calendar and demand.
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
"""One row: how often anything of the market was changed."""

TRADES = sa.Table(
    'trades',
    METADATA,
    # A digest: databases do not tell all names apart.
    sa.Column('key', sa.String(64), primary_key=True),
    sa.Column('project', sa.Text, nullable=False),
    # JSON: groups, units spent by account, and how far servers were charged:
    # together, so that neither is ever without the other.
    sa.Column('kept', _TEXT, nullable=False),
    **_MYSQL,
)
"""One row for each project that has groups or was charged: it grows with what
that project has, and with nothing of others."""

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
"""One row where the price of a host changed."""

PLANS = sa.Table(
    'plans',
    METADATA,
    sa.Column('uuid', sa.String(36), primary_key=True),
    sa.Column('goal', sa.String(16), nullable=False),
    # Of the request, or name of the host, that it is for.
    sa.Column('subject', sa.String(255), nullable=False),
    sa.Column('state', sa.String(16), nullable=False),
    # Few are of many that are remembered.
    sa.Column('is_open', sa.Boolean, nullable=False),
    sa.Column('made_at', sa.Double, nullable=False),
    sa.Column('changed_at', sa.Double, nullable=False),
    sa.Column('until', sa.Double, nullable=False),
    sa.Column('cause', sa.String(32), nullable=False),
    sa.Column('explanation', sa.Text, nullable=False),
    # JSON: all that is known of each move, in their order.
    sa.Column('moves', _TEXT, nullable=False),
    # JSON: names of hosts.
    sa.Column('empties', _TEXT, nullable=False),
    # JSON: numbers by name, of before and of afterwards.
    sa.Column('promised', sa.Text, nullable=False),
    sa.Column('won', sa.Text),
    sa.Column('version', sa.Integer, nullable=False),
    # JSON: servers that stay where they are, and why.
    sa.Column('stays', _TEXT, nullable=False),
    sa.Index('ix_plans_is_open', 'is_open'),
    sa.Index('ix_plans_made_at', 'made_at', 'uuid'),
    **_MYSQL,
)
"""One row per plan of moves, changed as a whole: a plan is never without its
moves."""

PLEDGES = sa.Table(
    'pledges',
    METADATA,
    sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('version', sa.Integer, nullable=False),
    # JSON: up to when, use by account, and shares of the batch system as
    # they were and as they were given: together, so that what is restored is
    # never what was given.
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
"""Tables of one row, and that row as it is made at first."""

LEADERS = sa.Table(
    'leaders',
    METADATA,
    sa.Column('epoch', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('holder', sa.String(255), nullable=False),
    sa.Column('since', sa.Double, nullable=False),
    **_MYSQL,
)
"""One row per leader there ever was; the largest epoch leads.

Taking over is an insert: of two that try at once, the key lets one through.
"""


_TOLD = ('reason', 'subject', 'numbers', 'stage', 'stage_at')


def newest_epoch() -> sa.ScalarSelect[Any]:
    """The epoch of the leader, in the statement that makes a change."""
    return sa.select(sa.func.max(LEADERS.c.epoch)).scalar_subquery()


def change_request(
    uuid: object, state: object, version: object, epoch: int
) -> sa.Update:
    """Change a request only if it is as it was and the leader leads."""
    return sa.update(REQUESTS).where(
        REQUESTS.c.uuid == uuid,
        REQUESTS.c.state == state,
        REQUESTS.c.version == version,
        newest_epoch() == epoch,
    )


def tell_requests(epoch: int) -> sa.Update:
    """Write reasons to requests; each row of parameters names both."""

    def given(name: str) -> sa.BindParameter[Any]:
        return sa.bindparam(name)

    return change_request(
        given('its_uuid'), given('its_state'), given('its_version'), epoch
    ).values({name: given(name) for name in _TOLD})
