# SPDX-License-Identifier: Apache-2.0

"""Requests that wait, the shares by which they do, and the room there is."""

import argparse
from collections.abc import Mapping
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
    'estimated_start': columns.Tree,
    'estimates': columns.Numbers,
    'classes': columns.Tree,
    'flavors': columns.Tree,
    'share': columns.Number,
    'normalised_share': columns.Number,
    'used': columns.Numbers,
    'fair_share': columns.Number,
    'budget': columns.Number,
    'ceiling': columns.Numbers,
    'budget_left': columns.Number,
    'leaving': columns.Tree,
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


_LIMITS = {
    'time_limit': 'how long servers may run: ' + duration.FORM,
    'longest_wait': 'how long requests may wait: ' + duration.FORM,
    'budget': 'unit-hours that all below it may use in a period',
}
_SPANS = frozenset({'time_limit', 'longest_wait'})


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
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Table:
        """Ask for them."""
        listed = self.api.pages('requests', **_whose(parsed_args))
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
    """Start a request whatever the plan is"""

    action = 'release'


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


class ListShare(base.Lister):
    """List who has which share and has used how much of it"""

    _columns = (
        ('Account', 'name'),
        ('Parent', 'parent'),
        ('Share', 'share'),
        ('Normalised Share', 'normalised_share'),
        ('Used', 'used'),
        ('Fair Share', 'fair_share'),
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
        ('Ceiling', 'ceiling'),
        ('Opens At', 'opens_at'),
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
    """Set how long an account may wait and run, and its budget"""

    def get_parser(self, prog_name: str) -> Any:
        """Take an account and its limits."""
        parser = super().get_parser(prog_name)
        _add_account(parser)
        for name, what in _LIMITS.items():
            flag = f'--{name.replace("_", "-")}'
            parser.add_argument(
                flag, dest=name, help=what, **self._takes(name)
            )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> base.Fields:
        """Ask for them."""
        given = vars(parsed_args)
        limits = {
            name: given[name] for name in _LIMITS if given[name] is not None
        }
        return base.fields(
            self.api.set_limits(parsed_args.account, self._wanted(limits)), {}
        )

    def _takes(self, name: str) -> Mapping[str, Any]:
        if name in _SPANS:
            return {'type': _seconds, 'metavar': '<span>'}
        return {'type': float, 'metavar': '<hours>'}

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
