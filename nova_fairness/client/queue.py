# SPDX-License-Identifier: Apache-2.0

"""Requests that wait, the shares by which they do, and the room there is."""

import argparse
from collections.abc import Mapping
import re
from typing import Any

from nova_fairness.client import base
from nova_fairness.client import columns
from nova_fairness.client import http
from nova_fairness.model import duration

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
    'share': columns.Number,
    'normalised_share': columns.Number,
    'used': columns.Numbers,
    'fair_share': columns.Number,
    'budget': columns.Number,
    'ceiling': columns.Numbers,
    'nominal': columns.Numbers,
    'borrowing_limit': columns.Numbers,
    'lending_limit': columns.Numbers,
    'windows': columns.ObjectTree,
    'budget_left': columns.Number,
    'funds_left': columns.Number,
    'leaving': columns.ObjectTree,
    'at_risk': columns.ObjectTree,
    'lost_vcpu_s': columns.Number,
}


def _add_projects(parser: argparse.ArgumentParser, what: str) -> None:
    """Take whose are listed, and how many."""
    parser.add_argument(
        '--all-projects',
        action='store_true',
        help=f'{what} of all projects, for those who may see them',
    )
    base.add_limit(parser)


def _add_account(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'account',
        metavar='<account>',
        help='ID of a project, <project>/<user>, or another name of the'
        ' share tree',
    )


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
                f'expected CLASS=AMOUNT with commas in between, got {text!r}'
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


def _whose(parsed_args: argparse.Namespace) -> dict[str, Any]:
    query = {'limit': parsed_args.limit, 'marker': parsed_args.marker}
    if parsed_args.all_projects:
        query['all_projects'] = 'true'
    return query


class ListRequest(base.Lister):
    """List requests that have not ended, the oldest first"""

    _columns = (
        ('ID', 'uuid'),
        ('Project', 'project_id'),
        ('State', 'state'),
        ('Position', 'position'),
        ('Since', 'since'),
        ('Ends At', 'ends_at'),
        ('Why', 'explanation'),
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
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Ask for them."""
        query = _whose(parsed_args)
        if parsed_args.preemptible:
            query['preemptible'] = 'true'
        listed = self.api.pages('requests', **query)
        return base.table(self._columns, listed.items)


class ShowRequest(base.ShowOne):
    """Show where a request stands, and why"""

    action = ''

    def get_parser(self, prog_name: str) -> Any:
        """Take a request."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'request',
            metavar='<request>',
            help='ID of the request; a build has that of its first server',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it, or act on it."""
        uuid = parsed_args.request
        if self.action:
            return base.fields(self.api.act_on(uuid, self.action), _FORMS)
        path = f'/requests/{http.quoted(uuid)}'
        return base.fields(self.api.one('request', path), _FORMS)


class CancelRequest(ShowRequest):
    """Take back a build that waits, and delete its servers"""

    action = 'cancel'


class ReleaseRequest(ShowRequest):
    """Start a request whatever the plan is, where there is room for it"""

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

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it."""
        order = {'without_room': True} if parsed_args.without_room else None
        told = self.api.act_on(parsed_args.request, 'release', order)
        return base.fields(told, _FORMS)


class PutRequestFirst(ShowRequest):
    """Let a request be next, before all others of its kind"""

    action = 'first'


class PutRequestBack(ShowRequest):
    """Let a request that was put first stand where the order puts it"""

    action = 'unfirst'


class HoldRequest(ShowRequest):
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

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it."""
        why = parsed_args.why
        order = None if why is None else {'why': why}
        told = self.api.act_on(parsed_args.request, 'hold', order)
        return base.fields(told, _FORMS)


class UnholdRequest(ShowRequest):
    """End the hold of a request: it starts in its turn"""

    action = 'unhold'


class ExtendRequest(ShowRequest):
    """Let servers of a request run longer"""

    def get_parser(self, prog_name: str) -> Any:
        """Take a request and a span of time."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'span', metavar='<span>', type=_seconds, help=duration.FORM
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it."""
        order = {'seconds': parsed_args.span}
        told = self.api.act_on(parsed_args.request, 'extend', order)
        return base.fields(told, _FORMS)


class ListPreemption(base.Lister):
    """List when servers had to make room, the newest first"""

    _columns = (
        ('ID', 'uuid'),
        ('Server', 'server'),
        ('Project', 'project_id'),
        ('For Project', 'for_project'),
        ('Chosen At', 'chosen_at'),
        ('Leaves At', 'leaves_at'),
        ('Action', 'action'),
        ('State', 'state'),
        ('Lost VCPU Seconds', 'lost_vcpu_s'),
    )

    def get_parser(self, prog_name: str) -> Any:
        """Take whose, and how many."""
        parser = super().get_parser(prog_name)
        _add_projects(parser, 'Preemptions')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Ask for them."""
        listed = self.api.pages('preemptions', **_whose(parsed_args))
        return base.table(self._columns, listed.items, _FORMS)


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
        path = f'/preemptions/{http.quoted(parsed_args.preemption)}'
        return base.fields(self.api.one('preemption', path), _FORMS)


class ListShare(base.Lister):
    """List who has which share and has used how much of it"""

    _columns = (
        ('Account', 'name'),
        ('Parent', 'parent'),
        ('Share', 'share'),
        ('Normalised Share', 'normalised_share'),
        ('Used', 'used'),
        ('Fair Share', 'fair_share'),
        ('Vanished', 'vanished'),
    )

    def get_parser(self, prog_name: str) -> Any:
        """Take whose, and how many."""
        parser = super().get_parser(prog_name)
        _add_projects(parser, 'Shares')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Ask for them."""
        listed = self.api.pages('shares', **_whose(parsed_args))
        return base.table(self._columns, listed.items, _FORMS)


class UnsetShare(base.ShowOne):
    """Take back the share of an account: the file of shares counts again"""

    def get_parser(self, prog_name: str) -> Any:
        """Take an account."""
        parser = super().get_parser(prog_name)
        _add_account(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for it."""
        return base.fields(self.api.set_share(parsed_args.account, None), {})


class SetShare(UnsetShare):
    """Set the share of an account beside those of the same parent"""

    def get_parser(self, prog_name: str) -> Any:
        """Take an account and its share."""
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
        account, share = parsed_args.account, parsed_args.share
        return base.fields(self.api.set_share(account, share), _FORMS)


class ListLimit(base.Lister):
    """List how long accounts may wait and run, and what they may have"""

    _columns = (
        ('Account', 'account'),
        ('Parent', 'parent'),
        ('Time Limit', 'time_limit'),
        ('Longest Wait', 'longest_wait'),
        ('Budget', 'budget'),
        ('Budget Left', 'budget_left'),
        ('Until', 'budget_until'),
        ('Funds', 'funds'),
        ('Funds Left', 'funds_left'),
        ('Ceiling', 'ceiling'),
        ('Nominal', 'nominal'),
        ('Borrowing Limit', 'borrowing_limit'),
        ('Lending Limit', 'lending_limit'),
        ('Windows', 'windows'),
        ('Opens At', 'opens_at'),
        ('Fault', 'fault'),
    )

    def get_parser(self, prog_name: str) -> Any:
        """Take whose, and how many."""
        parser = super().get_parser(prog_name)
        _add_projects(parser, 'Limits')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Ask for them."""
        listed = self.api.pages('limits', **_whose(parsed_args))
        return base.table(self._columns, listed.items, _FORMS)


class SetLimit(base.ShowOne):
    """Set how long an account may wait and run, and what it may have"""

    def get_parser(self, prog_name: str) -> Any:
        """Take an account and its limits."""
        parser = super().get_parser(prog_name)
        _add_account(parser)
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
        return base.fields(
            self.api.set_limits(parsed_args.account, self._wanted(limits)),
            _FORMS,
        )

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
        return base.fields(self.api.one('capacity', '/capacity'), _FORMS)
