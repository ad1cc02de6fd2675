# SPDX-License-Identifier: Apache-2.0

"""Requests that wait, the shares by which they do, and the room there is."""

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
"""Lists of Nova and Keystone with the names of these."""

_RUNS = 'active'

_Order = Callable[[str], resources.RequestResource]
"""Does something with a request, given its ID."""


def _add_projects(parser: argparse.ArgumentParser, what: str) -> None:
    """Take whose are listed, and how many."""
    parser.add_argument(
        '--all-projects',
        action='store_true',
        help=f'{what} of all projects, for those who may see them',
    )
    base.add_limit(parser)


def _seconds(text: str) -> float:
    try:
        return duration.seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _amounts(text: str) -> dict[str, int]:
    """Read ``CLASS=AMOUNT,...``; a dash alone for none at all."""
    found: dict[str, int] = {}
    for each in [] if text == '-' else text.split(','):
        name, _, amount = each.partition('=')
        if not (name and amount.isascii() and amount.isdigit()):
            raise argparse.ArgumentTypeError(
                'expected CLASS=AMOUNT,... with whole amounts of 0 or more,'
                f' got {text!r}'
            )
        if name in found:
            raise argparse.ArgumentTypeError(f'the class {name} comes twice')
        found[name] = int(amount)
    return found


_WINDOW = re.compile(
    r'(?P<begins>.+?) for (?P<lasts>\S+)(?: in (?P<zone>\S+))?'
)


def _window(text: str) -> dict[str, Any]:
    """Read ``BEGINS for SPAN [in ZONE]``."""
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
    'time_limit': ('how long servers may run: ' + duration.FORM, _SPAN),
    'longest_wait': ('how long requests may wait: ' + duration.FORM, _SPAN),
    'budget': (
        'unit-hours that all below it may use in a period',
        {'type': float, 'metavar': '<hours>'},
    ),
    'funds': (
        'currency that it and all below it may ever spend',
        {'type': float, 'metavar': '<amount>'},
    ),
    'ceiling': ('most that all below it may have at once', _AMOUNTS),
    'nominal': (
        'nominal quota without that of accounts below it; - for nothing',
        _AMOUNTS,
    ),
    'borrowing_limit': (
        'most that all below it may use beyond what they own; - for no limit',
        _AMOUNTS,
    ),
    'lending_limit': (
        'most that others may use of what it owns; - for no limit',
        _AMOUNTS,
    ),
    'windows': (
        'when requests start: <cron> for <span> in <zone>; repeatable',
        {'type': _window, 'metavar': '<window>', 'action': 'append'},
    ),
}
"""Limits by name: what each is, and how it is read."""


def _flag(name: str) -> str:
    return '--window' if name == 'windows' else f'--{name.replace("_", "-")}'


_FILTERS = {
    'state': 'Only those in this state, such as waiting, active or failed',
    'project': 'Only those of this project (name or ID), for those who may'
    ' see it',
    'user': 'Only those of this user (name or ID)',
    'host': 'Only those that were sent to this host, for operators',
    'name': 'Only those of the server with this name or ID',
    'since': 'Only those asked for since then, such as 2026-01-05T14:00, UTC',
}

_MORE = {
    'running': 'Also those whose servers just run; --state, --name and --host'
    ' find them anyway',
    'ended': 'Also those that ended, as long as they are known',
    'all': 'Both of these',
}


class ListRequest(base.ThingLister):
    """List requests, the next one first; those that run or ended on demand

    With --limit or --marker the oldest one comes first.
    """

    columns = (
        ('ID', 'uuid'),
        ('Server', 'servers'),
        ('Project', 'project_id'),
        ('State', 'state'),
        ('Status', 'status'),
    )
    more = (
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
        """Take whose, and how many."""
        parser = super().get_parser(prog_name)
        _add_projects(parser, 'Requests')
        parser.add_argument(
            '--preemptible',
            action='store_true',
            help='Only those whose servers run in what others leave',
        )
        for name, what in _FILTERS.items():
            parser.add_argument(f'--{name}', metavar=f'<{name}>', help=what)
        for name, what in _MORE.items():
            parser.add_argument(f'--{name}', action='store_true', help=what)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Ask for them."""
        listed = self.listed(
            parsed_args,
            self.api.requests,
            *('all_projects', 'preemptible', 'state', 'host', 'since'),
            **self._filters(parsed_args),
        )
        found = [*map(_with_status, listed)]
        if parsed_args.limit is None and parsed_args.marker is None:
            found.sort(key=_turn)
        known = naming.of_servers(found)
        forms = self.named_forms(
            parsed_args, _FORMS, _IDS, *_LISTS, known=known
        )
        return base.table(self.shown(parsed_args), found, forms)

    def _filters(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Parameters that are not as they were given."""
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
    """List how long requests waited, by project, flavor or reason"""

    def get_parser(self, prog_name: str) -> Any:
        """Take whose, since when, and by what they are grouped."""
        parser = super().get_parser(prog_name)
        _add_projects(parser, 'Waits')
        parser.add_argument(
            '--by',
            choices=[each.value for each in waits.WaitKey],
            default=waits.WaitKey.PROJECT.value,
            help='One row for each of these (default: project)',
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
        """Ask for them."""
        by, parts = parsed_args.by, waits.PERCENTILES
        project = parsed_args.project
        found = self.listed(
            parsed_args,
            self.api.waits,
            *('all_projects', 'by', 'since'),
            project_id=project and self.directory.owner('project', project),
        )
        shown = [(by.title(), 'name'), ('Requests', 'requests_count')]
        shown += [(f'P{part}', f'p{part}') for part in parts]
        forms: dict[str, Any] = {f'p{part}': columns.Span for part in parts}
        forms['explanation'] = columns.Text
        if by == waits.WaitKey.REASON.value:
            shown.append(('Waited', 'explanation'))
        if by == waits.WaitKey.PROJECT.value:
            forms['name'] = self.named(parsed_args, 'projects')
        return base.table(shown, found, forms)


def _with_status(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """A request with its status; older releases say only why."""
    return {**item, 'status': item.get('status', item.get('explanation'))}


def _turn(item: Mapping[str, Any]) -> tuple[bool, int]:
    """Key that puts those that wait in their order before all others."""
    place = item.get('position')
    return place is None, place or 0


class _OneRequest(base.ShowOne):
    is_one = True
    awaited: tuple[str, ...] = (_RUNS,)

    def get_parser(self, prog_name: str) -> Any:
        """Take a request."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'request',
            metavar='<request>',
            nargs=None if self.is_one else '+',
            help='ID of the request, or name or ID of one of its servers',
        )
        if self.awaited:
            told = f'Wait until it is {" or ".join(self.awaited)}'
            base.add_wait(parser, told)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it, or act on it."""
        given = parsed_args.request
        if not self.is_one:
            return self.of_each(
                given,
                lambda name: self._acted(parsed_args, name),
                lambda found: self._forms(parsed_args, found),
            )
        found = self._shown(parsed_args, self._uuid(given), given)
        return base.fields(found, self._forms(parsed_args, found))

    def _uuid(self, given: str) -> str:
        return self.directory.server_of_request(given)

    def _forms(
        self, parsed_args: argparse.Namespace, found: Mapping[str, Any]
    ) -> Mapping[str, Callable[[Any], Any]]:
        """Forms of one request, with names."""
        known = naming.of_servers([found])
        return self.named_forms(
            parsed_args, _FORMS, _IDS, *_LISTS, known=known
        )

    def _acted(
        self, parsed_args: argparse.Namespace, given: str
    ) -> resources.Answer:
        uuid = self._uuid(given)
        found = _known(given, lambda: self._done(parsed_args, given, uuid))
        is_waiting = self.awaited and parsed_args.wait
        return self._shown(parsed_args, uuid, given) if is_waiting else found

    def _done(
        self, parsed_args: argparse.Namespace, _given: str, uuid: str
    ) -> resources.RequestResource:
        return self._order(parsed_args)(uuid)

    def _order(self, _parsed_args: argparse.Namespace) -> _Order:
        return self.api.get_request

    def _shown(
        self, parsed_args: argparse.Namespace, uuid: str, given: str
    ) -> Mapping[str, Any]:
        """A request, after the wait that was asked for."""
        events = self._with_events(parsed_args)

        def ask() -> resources.RequestResource:
            if parsed_args.wait:
                wait = self.api.wait_for_request
                base.waited(lambda: wait(uuid, self.awaited))
            return self.api.get_request(uuid, events=events)

        return _known(given, ask)

    def _with_events(self, _parsed_args: argparse.Namespace) -> bool:
        return False


def _known(
    given: str, ask: Callable[[], resources.RequestResource]
) -> resources.Answer:
    """The answer about a request.

    :param given: its id, or a server.
    :raises CommandError: if a server has none, with what that means.
    """
    try:
        return ask().answer
    except http.Refused as error:
        if error.status != http.NOT_FOUND:
            raise
        raise exceptions.CommandError(
            f'{given}: no request of it that you may see: it started without'
            ' the queue, or its request ended long ago (HTTP 404)'
        ) from error


class ShowRequest(_OneRequest):
    """Show where a request stands, and why"""

    def get_parser(self, prog_name: str) -> Any:
        """Take a request, and whether its history is shown."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--events',
            action='store_true',
            help='Show its history, too: a line for each event',
        )
        return parser

    def _with_events(self, parsed_args: argparse.Namespace) -> bool:
        return bool(parsed_args.events)


class _ActOnRequest(_OneRequest):
    is_one = False
    awaited: tuple[str, ...] = ()


class CancelRequest(_ActOnRequest):
    """Take back a build that waits, and delete its servers"""

    awaited = ('cancelled', 'ended')

    def _order(self, _parsed_args: argparse.Namespace) -> _Order:
        return self.api.cancel_request


class ReleaseRequest(_ActOnRequest):
    """Start a request whatever the plan is, where there is room for it"""

    awaited = (_RUNS,)

    def get_parser(self, prog_name: str) -> Any:
        """Take a request, and whether it starts without room."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--without-room',
            action='store_true',
            help='Let Nova look for room; it destroys the request if there is'
            ' none',
        )
        return parser

    def _order(self, parsed_args: argparse.Namespace) -> _Order:
        is_blind = parsed_args.without_room
        return functools.partial(
            self.api.release_request, without_room=is_blind
        )


class PutRequestFirst(_ActOnRequest):
    """Let a request be next, before all others of its kind"""

    def _order(self, _parsed_args: argparse.Namespace) -> _Order:
        return self.api.put_request_first


class _EndOfOrder(_ActOnRequest):
    """Takes something back, and says so if there is nothing."""

    field = ''
    idle = ''

    def _done(
        self, parsed_args: argparse.Namespace, given: str, uuid: str
    ) -> resources.RequestResource:
        if not self.api.get_request(uuid).answer.get(self.field):
            LOG.warning('%s: %s; nothing was changed', given, self.idle)
        return super()._done(parsed_args, given, uuid)


class PutRequestBack(_EndOfOrder):
    """Let a request that was put first stand where the order puts it"""

    field = 'first'
    idle = 'it was not put first'

    def _order(self, _parsed_args: argparse.Namespace) -> _Order:
        return self.api.put_request_back


class HoldRequest(_ActOnRequest):
    """Keep a request from starting until the hold ends"""

    def get_parser(self, prog_name: str) -> Any:
        """Take a request, and why."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--why',
            metavar='<text>',
            help='Text for the owners of the request, 1 to 200 characters',
        )
        return parser

    def _order(self, parsed_args: argparse.Namespace) -> _Order:
        return functools.partial(self.api.hold_request, why=parsed_args.why)


class UnholdRequest(_EndOfOrder):
    """End the hold of a request: it starts in its turn"""

    field = 'held_by'
    idle = 'it was not held'

    def _order(self, _parsed_args: argparse.Namespace) -> _Order:
        return self.api.unhold_request


class ExtendRequest(_ActOnRequest):
    """Let servers of a request run longer"""

    def get_parser(self, prog_name: str) -> Any:
        """Take a request and a span of time."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'span', metavar='<span>', type=_seconds, help=duration.FORM
        )
        return parser

    def _order(self, parsed_args: argparse.Namespace) -> _Order:
        span = parsed_args.span
        return functools.partial(self.api.extend_request, seconds=span)


class _ProjectLister(base.ThingLister):
    """Lists what the own project has, or all of them have."""

    plural = ''
    keys: tuple[str, ...] = ()
    names_of: tuple[str, ...] = ('projects', 'users')

    def get_parser(self, prog_name: str) -> Any:
        """Take whose, and how many."""
        parser = super().get_parser(prog_name)
        _add_projects(parser, self.plural.title())
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Ask for them."""
        find = getattr(self.api, self.plural)
        found = self.listed(parsed_args, find, 'all_projects')
        whose = self.named(parsed_args, *self.names_of)
        forms = {**_FORMS, **dict.fromkeys(self.keys, whose)}
        return base.table(self.shown(parsed_args), found, forms)


class ListPreemption(_ProjectLister):
    """List when servers had to make room, the newest first"""

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
    more = (
        ('For Project', 'for_project'),
        ('Chosen At', 'chosen_at'),
        ('Lost VCPU Seconds', 'lost_vcpu_s'),
    )


class ShowPreemption(base.ShowOne):
    """Show a preemption: its victim, its preemptor and its outcome"""

    def get_parser(self, prog_name: str) -> Any:
        """Take a preemption."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'preemption',
            metavar='<preemption>',
            help='ID of the preemption; the list has it',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it."""
        found = self.api.get_preemption(parsed_args.preemption)
        return base.fields(found.answer, _FORMS)


class ListShare(_ProjectLister):
    """List who has which share and has used how much of it"""

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
    more = (('Parent', 'parent'),)


class UnsetShare(dry_runs.AccountChange):
    """Take back the share of an account: the file of shares counts again"""

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it."""
        return self._set(parsed_args, None)

    def _set(
        self, parsed_args: argparse.Namespace, share: float | None
    ) -> base.Fields:
        do = functools.partial(self.api.set_share, share=share)
        return self.change_each(parsed_args, do, _FORMS)


class SetShare(UnsetShare):
    """Set the share of an account beside those of the same parent"""

    def get_parser(self, prog_name: str) -> Any:
        """Take accounts, and the share of each."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'share',
            metavar='<share>',
            type=float,
            help='number from 0 to 1e9; 0 comes last',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it."""
        return self._set(parsed_args, parsed_args.share)


class ListLimit(_ProjectLister):
    """List how long accounts may wait and run, and what they may have"""

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
    more = (
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
    """Set how long an account may wait and run, and what it may have"""

    def get_parser(self, prog_name: str) -> Any:
        """Take an account and its limits."""
        parser = super().get_parser(prog_name)
        for name, (what, _) in _LIMITS.items():
            parser.add_argument(
                _flag(name), dest=name, help=what, **self._takes(name)
            )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for them."""
        given = vars(parsed_args)
        limits = {
            name: given[name] for name in _LIMITS if given[name] is not None
        }
        if not limits:
            flags = ', '.join(map(_flag, _LIMITS))
            raise exceptions.CommandError(f'give at least one of {flags}')
        wanted = self._wanted(limits)
        do = functools.partial(self.api.set_limits, **wanted)
        return self.change_each(parsed_args, do, _FORMS)

    def _takes(self, name: str) -> Mapping[str, Any]:
        return _LIMITS[name][1]

    def _wanted(self, given: dict[str, Any]) -> dict[str, Any]:
        return given


class UnsetLimit(SetLimit):
    """Take back limits of an account: the file of shares counts again"""

    def _takes(self, name: str) -> Mapping[str, Any]:
        return {'action': 'store_const', 'const': True}

    def _wanted(self, given: dict[str, Any]) -> dict[str, Any]:
        return dict.fromkeys(given)


class ShowCapacity(base.ShowOne):
    """Show how full the cloud is, and what starts now"""

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it."""
        return base.fields(self.api.get_capacity(), _FORMS)
