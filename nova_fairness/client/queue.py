# SPDX-License-Identifier: Apache-2.0

"""Commands for requests, waits, shares, limits, preemptions and capacity."""

import argparse
from collections.abc import Callable
from collections.abc import Mapping
import functools
import logging
import re
from typing import Any

from osc_lib import exceptions

from nova_fairness.client import base
from nova_fairness.client import columns
from nova_fairness.client import dry_runs
from nova_fairness.client import http
from nova_fairness.client import naming
from nova_fairness.client import resources
from nova_fairness.model import duration
from nova_fairness.model import waits

LOG = logging.getLogger(__name__)

_FORMS = {
    'servers': columns.Names,
    'resources': columns.Numbers,
    'numbers': columns.Numbers,
    'summary': columns.Sentences,
    'factors': columns.Numbers,
    'estimated_start': columns.ObjectTree,
    'estimates': columns.Numbers,
    'classes': columns.ObjectTree,
    'flavors': columns.ObjectTree,
    'time_limit': columns.Span,
    'longest_wait': columns.Span,
    'extended': columns.Span,
    'share': columns.Number,
    'normalised_share': columns.Percent,
    'used': columns.Percents,
    'fair_share': columns.Number,
    'budget': columns.Number,
    'ceiling': columns.Numbers,
    'nominal': columns.Numbers,
    'borrowing_limit': columns.Numbers,
    'lending_limit': columns.Numbers,
    'windows': columns.ObjectTree,
    'events': columns.Events,
    'budget_used': columns.Number,
    'budget_committed': columns.Number,
    'budget_left': columns.Number,
    'funds_left': columns.Number,
    'leaving': columns.ObjectTree,
    'at_risk': columns.ObjectTree,
    'lost_vcpu_s': columns.Number,
    'funds': columns.Number,
    'status': columns.Text,
    'fault': columns.Text,
    'leaves_at': columns.Moment,
    'chosen_at': columns.Moment,
    'budget_until': columns.Moment,
    'opens_at': columns.Moment,
}


_IDS = ('servers', 'project_id', 'user_id')
_LISTS = ('servers', 'projects', 'users')
"""Kinds of objects whose names replace these IDs."""

_RUNS = 'active'

_RequestAction = Callable[[str], resources.RequestResource]
"""Action on a request, given its ID."""


def _add_projects(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the options for all projects and for the range of the list.

    :param what: objects in the list, for the help.
    """
    parser.add_argument(
        '--all-projects',
        action='store_true',
        help=f'{what} of all projects (operators only)',
    )
    base.add_range_options(parser)


def _seconds(text: str) -> float:
    try:
        return duration.parse_seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _amounts(text: str) -> dict[str, int]:
    """Parse ``CLASS=AMOUNT,...``; a dash is an empty mapping."""
    found: dict[str, int] = {}
    for each in [] if text == '-' else text.split(','):
        name, _, amount = each.partition('=')
        if not (name and amount.isascii() and amount.isdigit()):
            raise argparse.ArgumentTypeError(
                'expected CLASS=AMOUNT,... with whole amounts of 0 or more,'
                f' got {text!r}'
            )
        if name in found:
            raise argparse.ArgumentTypeError(f'class {name} is given twice')
        found[name] = int(amount)
    return found


_WINDOW = re.compile(
    r'(?P<begins>.+?) for (?P<lasts>\S+)(?: in (?P<zone>\S+))?'
)


def _window(text: str) -> dict[str, Any]:
    """Parse ``BEGINS for SPAN [in ZONE]``."""
    found = _WINDOW.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(
            "expected BEGINS for SPAN [in ZONE], such as '0 20 * * mon-fri for"
            f" 10h in Europe/Zurich', got {text!r}"
        )
    parts = {name: each for name, each in found.groupdict().items() if each}
    return {**parts, 'lasts': _seconds(parts['lasts'])}


_SPAN: Mapping[str, Any] = {'type': _seconds, 'metavar': '<span>'}
_AMOUNTS: Mapping[str, Any] = {
    'type': _amounts,
    'metavar': '<class=amount,...>',
}
_LIMITS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    'time_limit': ('longest run time of servers: ' + duration.FORM, _SPAN),
    'longest_wait': ('longest wait of requests: ' + duration.FORM, _SPAN),
    'budget': (
        (
            'unit-hours that the account and accounts below it may use in a'
            ' period'
        ),
        {'type': float, 'metavar': '<hours>'},
    ),
    'funds': (
        'currency that the account and accounts below it may spend in total',
        {'type': float, 'metavar': '<amount>'},
    ),
    'ceiling': (
        (
            'largest amounts that the account and accounts below it may'
            ' use at the same time'
        ),
        _AMOUNTS,
    ),
    'nominal': (
        (
            'nominal quota of the account, without that of accounts below it;'
            ' "-" for none'
        ),
        _AMOUNTS,
    ),
    'borrowing_limit': (
        (
            'largest amounts that the account and accounts below it may'
            ' use beyond their nominal quota; "-" for no limit'
        ),
        _AMOUNTS,
    ),
    'lending_limit': (
        (
            'largest amounts of the nominal quota that other accounts may use;'
            ' "-" for no limit'
        ),
        _AMOUNTS,
    ),
    'windows': (
        (
            'times at which requests may start: <cron> for <span> in'
            ' <zone>; can be repeated'
        ),
        {'type': _window, 'metavar': '<window>', 'action': 'append'},
    ),
}
"""Limits by name: the help of each, and the arguments of its parser."""


def _flag(name: str) -> str:
    return '--window' if name == 'windows' else f'--{name.replace("_", "-")}'


_FILTERS = {
    'state': 'Only requests in this state, such as waiting, active or failed',
    'project': 'Only requests of this project (name or ID)',
    'user': 'Only requests of this user (name or ID)',
    'host': 'Only requests that were sent to this host (operators only)',
    'name': 'Only requests of the server with this name or ID',
    'since': 'Only requests that arrived after this time, such as'
    ' 2026-01-05T14:00, UTC',
}

_INCLUDED = {
    'running': 'Include requests whose servers run; --state, --name and --host'
    ' always include them',
    'ended': 'Include requests that ended and are still stored',
    'all': 'Include running and ended requests',
}


class ListRequest(base.ThingLister):
    """List requests, the next one first; running and ended ones on demand

    With --limit or --marker the oldest one comes first.
    """

    columns = (
        ('ID', 'uuid'),
        ('Server', 'servers'),
        ('Project', 'project_id'),
        ('State', 'state'),
        ('Status', 'status'),
    )
    long_columns = (
        ('User', 'user_id'),
        ('Position', 'position'),
        ('Since', 'since'),
        ('Ends At', 'ends_at'),
        ('Origin', 'origin'),
        ('Preemptible', 'preemptible'),
        ('Resources', 'resources'),
        ('Asked At', 'asked_at'),
        ('Estimated Start', 'estimated_start'),
        ('Expires At', 'expires_at'),
        ('Time Limit', 'time_limit'),
    )

    def get_parser(self, prog_name: str) -> Any:
        """Add the filters and the options for the range of the list."""
        parser = super().get_parser(prog_name)
        _add_projects(parser, 'Requests')
        parser.add_argument(
            '--preemptible',
            action='store_true',
            help='Only preemptible requests: their servers can be evicted',
        )
        for name, what in _FILTERS.items():
            parser.add_argument(f'--{name}', metavar=f'<{name}>', help=what)
        for name, what in _INCLUDED.items():
            parser.add_argument(f'--{name}', action='store_true', help=what)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Read the requests and return them as a table."""
        listed = self.read_list(
            parsed_args,
            self.api.requests,
            *('all_projects', 'preemptible', 'state', 'host', 'since'),
            **self._filters(parsed_args),
        )
        found = [*map(_with_status, listed)]
        if parsed_args.limit is None and parsed_args.marker is None:
            found.sort(key=_queue_position_key)
        known = naming.server_names(found)
        forms = self.formats_with_names(
            parsed_args, _FORMS, _IDS, *_LISTS, known=known
        )
        return base.table(self.chosen_columns(parsed_args), found, forms)

    def _filters(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Return the parameters that need a look-up or combine several
        options.
        """
        find = self.directory
        return {
            'project_id': parsed_args.project
            and find.owner('project', parsed_args.project),
            'user_id': parsed_args.user
            and find.owner('user', parsed_args.user),
            'server': parsed_args.name
            and find.server_of_request(parsed_args.name),
            'running': parsed_args.all or parsed_args.running,
            'ended': parsed_args.all or parsed_args.ended,
        }


class ListWait(base.ThingLister):
    """List the waits of requests, by project, flavor or reason"""

    def get_parser(self, prog_name: str) -> Any:
        """Add the projects, the time and the kind of the rows."""
        parser = super().get_parser(prog_name)
        _add_projects(parser, 'Waits')
        parser.add_argument(
            '--by',
            choices=[each.value for each in waits.WaitKey],
            default=waits.WaitKey.PROJECT.value,
            help='Kind of object that has a row each (default: project)',
        )
        parser.add_argument(
            '--project', metavar='<project>', help=_FILTERS['project']
        )
        parser.add_argument(
            '--since',
            metavar='<since>',
            help='Only requests that were sent to Nova since then, such as'
            ' 2026-01-05T14:00, UTC (default: seven days ago)',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Read the waits and return them as a table."""
        by, percentiles = parsed_args.by, waits.PERCENTILES
        project = parsed_args.project
        found = self.read_list(
            parsed_args,
            self.api.waits,
            *('all_projects', 'by', 'since'),
            project_id=project and self.directory.owner('project', project),
        )
        shown = [(by.title(), 'name'), ('Requests', 'requests_count')]
        shown += [(f'P{part}', f'p{part}') for part in percentiles]
        forms: dict[str, Any] = {
            f'p{part}': columns.Span for part in percentiles
        }
        forms['explanation'] = columns.Text
        if by == waits.WaitKey.REASON.value:
            shown.append(('Waited', 'explanation'))
        if by == waits.WaitKey.PROJECT.value:
            forms['name'] = self.id_format(parsed_args, 'projects')
        return base.table(shown, found, forms)


def _with_status(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a request with its status; older releases send only the
    explanation.
    """
    return {**item, 'status': item.get('status', item.get('explanation'))}


def _queue_position_key(item: Mapping[str, Any]) -> tuple[bool, int]:
    """Return the sort key that puts waiting requests, by their position,
    before all others.
    """
    place = item.get('position')
    return place is None, place or 0


class _OneRequest(base.ShowOne):
    is_one = True
    awaited: tuple[str, ...] = (_RUNS,)

    def get_parser(self, prog_name: str) -> Any:
        """Add the request, or several requests for an action."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'request',
            metavar='<request>',
            nargs=None if self.is_one else '+',
            help='ID of the request, or name or ID of one of its servers',
        )
        if self.awaited:
            states = ' or '.join(self.awaited)
            base.add_wait_option(parser, f'Wait until the request is {states}')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Read the request, or run the action on each request."""
        given = parsed_args.request
        if not self.is_one:
            return self.run_for_each(
                given,
                lambda name: self._acted(parsed_args, name),
                lambda found: self._forms(parsed_args, found),
            )
        found = self._shown(parsed_args, self._uuid(given), given)
        return base.format_fields(found, self._forms(parsed_args, found))

    def _uuid(self, given: str) -> str:
        return self.directory.server_of_request(given)

    def _forms(
        self, parsed_args: argparse.Namespace, found: Mapping[str, Any]
    ) -> Mapping[str, Callable[[Any], Any]]:
        """Return the formats of one request, with names of its IDs."""
        known = naming.server_names([found])
        return self.formats_with_names(
            parsed_args, _FORMS, _IDS, *_LISTS, known=known
        )

    def _acted(
        self, parsed_args: argparse.Namespace, given: str
    ) -> resources.Answer:
        uuid = self._uuid(given)
        found = _answer_or_explain(
            given, lambda: self._done(parsed_args, given, uuid)
        )
        is_waiting = self.awaited and parsed_args.wait
        return self._shown(parsed_args, uuid, given) if is_waiting else found

    def _done(
        self, parsed_args: argparse.Namespace, _given: str, uuid: str
    ) -> resources.RequestResource:
        return self._order(parsed_args)(uuid)

    def _order(self, _parsed_args: argparse.Namespace) -> _RequestAction:
        return self.api.get_request

    def _shown(
        self, parsed_args: argparse.Namespace, uuid: str, given: str
    ) -> Mapping[str, Any]:
        """Read a request, after the requested wait."""
        events = self._with_events(parsed_args)

        def ask() -> resources.RequestResource:
            if parsed_args.wait:
                wait = self.api.wait_for_request
                base.wait_for_state(lambda: wait(uuid, self.awaited))
            return self.api.get_request(uuid, events=events)

        return _answer_or_explain(given, ask)

    def _with_events(self, _parsed_args: argparse.Namespace) -> bool:
        return False


def _answer_or_explain(
    given: str, ask: Callable[[], resources.RequestResource]
) -> resources.Answer:
    """Return the answer about a request.

    :param given: ID of the request, or of a server.
    :param ask: queries the API.
    :raises CommandError: if there is no request, with possible causes.
    """
    try:
        return ask().answer
    except http.Refused as error:
        if error.status != http.NOT_FOUND:
            raise
        raise exceptions.CommandError(
            f'{given}: request not found (HTTP 404): it is not visible to you,'
            ' its server started without the queue, or the request ended long'
            ' ago'
        ) from error


class ShowRequest(_OneRequest):
    """Show the state of a request, its position and its reason"""

    def get_parser(self, prog_name: str) -> Any:
        """Add the request and the option for its history."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--events',
            action='store_true',
            help='Show the history of the request, one line per event',
        )
        return parser

    def _with_events(self, parsed_args: argparse.Namespace) -> bool:
        return bool(parsed_args.events)


class _ActOnRequest(_OneRequest):
    is_one = False
    awaited: tuple[str, ...] = ()


class CancelRequest(_ActOnRequest):
    """Cancel a waiting build request, and delete its servers"""

    awaited = ('cancelled', 'ended')

    def _order(self, _parsed_args: argparse.Namespace) -> _RequestAction:
        return self.api.cancel_request


class ReleaseRequest(_ActOnRequest):
    """Start a request at once on a host with room, before its turn"""

    awaited = (_RUNS,)

    def get_parser(self, prog_name: str) -> Any:
        """Add the requests and the option for a start without room."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--without-room',
            action='store_true',
            help='Send the request to Nova even if no host has room; Nova'
            ' fails it if it finds none',
        )
        return parser

    def _order(self, parsed_args: argparse.Namespace) -> _RequestAction:
        is_blind = parsed_args.without_room
        return functools.partial(
            self.api.release_request, without_room=is_blind
        )


class PutRequestFirst(_ActOnRequest):
    """Put a request before all others of its priority class"""

    def _order(self, _parsed_args: argparse.Namespace) -> _RequestAction:
        return self.api.put_request_first


class _EndRequestState(_ActOnRequest):
    """Base class of actions that end a state of a request, and warn if it does
    not have that state.

    :cvar field: field of the request that is set in that state.
    :cvar idle: warning if it is not set.
    """

    field = ''
    idle = ''

    def _done(
        self, parsed_args: argparse.Namespace, given: str, uuid: str
    ) -> resources.RequestResource:
        if not self.api.get_request(uuid).answer.get(self.field):
            LOG.warning('%s: %s; nothing was changed', given, self.idle)
        return super()._done(parsed_args, given, uuid)


class PutRequestBack(_EndRequestState):
    """Undo "first": the order decides again when a request starts"""

    field = 'first'
    idle = 'it was not put first'

    def _order(self, _parsed_args: argparse.Namespace) -> _RequestAction:
        return self.api.put_request_back


class HoldRequest(_ActOnRequest):
    """Hold a request: it does not start until the hold ends"""

    def get_parser(self, prog_name: str) -> Any:
        """Add the requests and the text for their owners."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--why',
            metavar='<text>',
            help='Text for the owners of the request, 1 to 200 characters',
        )
        return parser

    def _order(self, parsed_args: argparse.Namespace) -> _RequestAction:
        return functools.partial(self.api.hold_request, why=parsed_args.why)


class UnholdRequest(_EndRequestState):
    """End the hold of a request: it starts in its turn"""

    field = 'held_by'
    idle = 'it was not held'

    def _order(self, _parsed_args: argparse.Namespace) -> _RequestAction:
        return self.api.unhold_request


class ExtendRequest(_ActOnRequest):
    """Extend the time limit of the servers of a request"""

    def get_parser(self, prog_name: str) -> Any:
        """Add the requests and a span of time."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'span', metavar='<span>', type=_seconds, help=duration.FORM
        )
        return parser

    def _order(self, parsed_args: argparse.Namespace) -> _RequestAction:
        span = parsed_args.span
        return functools.partial(self.api.extend_request, seconds=span)


class _ProjectLister(base.ThingLister):
    """Base class of lists for the caller's project or for all projects."""

    plural = ''
    keys: tuple[str, ...] = ()
    names_of: tuple[str, ...] = ('projects', 'users')

    def get_parser(self, prog_name: str) -> Any:
        """Add the options for all projects and for the range of the list."""
        parser = super().get_parser(prog_name)
        _add_projects(parser, self.plural.title())
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Read the objects and return them as a table."""
        find = getattr(self.api, self.plural)
        found = self.read_list(parsed_args, find, 'all_projects')
        id_format = self.id_format(parsed_args, *self.names_of)
        forms = {**_FORMS, **dict.fromkeys(self.keys, id_format)}
        return base.table(self.chosen_columns(parsed_args), found, forms)


class ListPreemption(_ProjectLister):
    """List preemptions, the newest first"""

    plural = 'preemptions'
    keys = ('server', 'project_id', 'for_project')
    names_of = ('servers', 'projects')
    columns = (
        ('ID', 'uuid'),
        ('Server', 'server'),
        ('Project', 'project_id'),
        ('Leaves At', 'leaves_at'),
        ('Action', 'action'),
        ('State', 'state'),
    )
    long_columns = (
        ('For Project', 'for_project'),
        ('Chosen At', 'chosen_at'),
        ('Lost VCPU Seconds', 'lost_vcpu_s'),
    )


class ShowPreemption(base.ShowOne):
    """Show a preemption: its victim, its preemptor and its outcome"""

    def get_parser(self, prog_name: str) -> Any:
        """Add the preemption."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'preemption',
            metavar='<preemption>',
            help='ID of the preemption, as in "openstack fairness preemption'
            ' list"',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Read the preemption and return its fields."""
        found = self.api.get_preemption(parsed_args.preemption)
        return base.format_fields(found.answer, _FORMS)


class ListShare(_ProjectLister):
    """List accounts with their shares and their use"""

    plural = 'shares'
    keys = ('name', 'parent')
    columns = (
        ('Account', 'name'),
        ('Share', 'share'),
        ('Normalised Share', 'normalised_share'),
        ('Used', 'used'),
        ('Fair Share', 'fair_share'),
        ('Vanished', 'vanished'),
    )
    long_columns = (('Parent', 'parent'),)


class UnsetShare(dry_runs.AccountChange):
    """Remove the share set for an account: the file of shares applies again"""

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Remove the share of each account."""
        return self._set(parsed_args, None)

    def _set(
        self, parsed_args: argparse.Namespace, share: float | None
    ) -> base.Fields:
        do = functools.partial(self.api.set_share, share=share)
        return self.change_each(parsed_args, do, _FORMS)


class SetShare(UnsetShare):
    """Set the share of an account relative to accounts with the same parent"""

    def get_parser(self, prog_name: str) -> Any:
        """Add the accounts and the share of each."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'share',
            metavar='<share>',
            type=float,
            help='number from 0 to 1e9; accounts with share 0 are served last',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Set the share of each account."""
        return self._set(parsed_args, parsed_args.share)


class ListLimit(_ProjectLister):
    """List the limits of accounts: time, budget, funds, amounts and windows"""

    plural = 'limits'
    keys = ('account', 'parent')
    columns = (
        ('Account', 'account'),
        ('Time Limit', 'time_limit'),
        ('Budget', 'budget'),
        ('Budget Used', 'budget_used'),
        ('Budget Left', 'budget_left'),
        ('Ceiling', 'ceiling'),
        ('Fault', 'fault'),
    )
    long_columns = (
        ('Parent', 'parent'),
        ('Longest Wait', 'longest_wait'),
        ('Budget Committed', 'budget_committed'),
        ('Until', 'budget_until'),
        ('Funds', 'funds'),
        ('Funds Left', 'funds_left'),
        ('Nominal', 'nominal'),
        ('Borrowing Limit', 'borrowing_limit'),
        ('Lending Limit', 'lending_limit'),
        ('Windows', 'windows'),
        ('Opens At', 'opens_at'),
    )


class SetLimit(dry_runs.AccountChange):
    """Set limits of an account: time, budget, funds, amounts and windows"""

    def get_parser(self, prog_name: str) -> Any:
        """Add the accounts and their limits."""
        parser = super().get_parser(prog_name)
        for name, (what, _) in _LIMITS.items():
            parser.add_argument(
                _flag(name),
                dest=name,
                help=what,
                **self._option_arguments(name),
            )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Set the limits of each account."""
        given = vars(parsed_args)
        limits = {
            name: given[name] for name in _LIMITS if given[name] is not None
        }
        if not limits:
            flags = ', '.join(map(_flag, _LIMITS))
            raise exceptions.CommandError(
                f'limits: none is given; give at least one of {flags}'
            )
        wanted = self._limits_to_set(limits)
        do = functools.partial(self.api.set_limits, **wanted)
        return self.change_each(parsed_args, do, _FORMS)

    def _option_arguments(self, name: str) -> Mapping[str, Any]:
        return _LIMITS[name][1]

    def _limits_to_set(self, given: dict[str, Any]) -> dict[str, Any]:
        return given


class UnsetLimit(SetLimit):
    """Remove limits set for an account: the file of shares applies again"""

    def _option_arguments(self, name: str) -> Mapping[str, Any]:
        return {'action': 'store_const', 'const': True}

    def _limits_to_set(self, given: dict[str, Any]) -> dict[str, Any]:
        return dict.fromkeys(given)


class ShowCapacity(base.ShowOne):
    """Show the use of the cloud, and the servers that could start now"""

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Read the capacity and return its fields."""
        return base.format_fields(self.api.get_capacity(), _FORMS)
