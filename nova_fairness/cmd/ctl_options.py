# SPDX-License-Identifier: Apache-2.0

"""The command line of ``nova-fairness-ctl``."""

import argparse
import pathlib

from nova_fairness import version

PROGRAM = 'nova-fairness-ctl'

_EPILOG = """\
commands:
  set-metric NAME   choose the metric of the whole domain
  set-policy NAME   choose the policy of the whole domain
  pause             give every control back what it had, and leave it alone
  resume            steer again
  reset             begin again with neutral weights
  prefer UUID=N     give a VM N times (0.01 to 100) of what each other VM of
                    its owner has; UUID= forgets it
  status            how the agents are
  instances         how the VMs are treated
  users             how heavy the users are
  projects          how heavy the projects are
  plugins           which metrics and policies are installed
  why UUID          why a VM gets what it gets
  preview [METRIC]  who would gain or lose how much if weights were in force,
                    with one metric or with each that is installed
  top               who uses how much and who waits, again and again until
                    Ctrl-C

exit codes:
  0    every host did it
  1    some hosts were not reached, or refused
  2    wrong usage or configuration
  130  interrupted
"""

METHODS = {
    'set-metric': 'set_metric',
    'set-policy': 'set_policy',
    'pause': 'pause',
    'resume': 'resume',
    'reset': 'reset',
    'prefer': 'set_preferences',
    'status': 'get_status',
    'instances': 'list_instances',
    'users': 'list_users',
    'projects': 'list_projects',
    'plugins': 'get_plugins',
    'why': 'get_instance',
    'preview': 'get_preview',
}
WHY = 'why'
PREVIEW = 'preview'
TOP = 'top'
"""Command that makes several calls, again and again."""

ROLLED = ('set-metric', 'set-policy')
"""Commands that make one epoch for all hosts."""

NAMED = (*ROLLED, 'prefer', WHY)


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line; ends the program with 2 if it is wrong.

    :param arguments: without the name of the program; ``None`` for those of
        the process.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    named = options.name is not None
    if options.command != PREVIEW and named != (options.command in NAMED):
        parser.error(
            f'{options.command} takes '
            + ('a NAME' if options.command in NAMED else 'no NAME')
        )
    if options.command == 'prefer':
        try:
            options.preferences = _preference(options.name)
        except ValueError as error:
            parser.error(str(error))
    if not (options.host or options.hosts_from or options.all):
        parser.error('name the hosts: --host, --hosts-from or --all')
    if options.command != TOP and (options.interval or options.count):
        parser.error('--interval and --count go with top only')
    if options.command == TOP and options.json:
        parser.error('--json does not go with top: ask users and instances')
    if options.long and options.command not in (WHY, PREVIEW):
        parser.error('--long goes with why and preview only')
    if options.all and (options.host or options.hosts_from):
        parser.error('--all goes neither with --host nor with --hosts-from')
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description='Look at the agents of a fairness domain and steer them.',
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        '--version', action='version', version=version.release()
    )
    parser.add_argument('command', choices=(*METHODS, TOP), metavar='COMMAND')
    parser.add_argument('name', nargs='?', metavar='NAME')
    parser.add_argument(
        '--config-file',
        action='append',
        metavar='FILE',
        help='with transport_url, the domain and the keys (default: that of '
        'the agent, in /etc/nova-fairness)',
    )
    parser.add_argument(
        '--transport-url',
        metavar='URL',
        help='instead of the one of the configuration; other users of this '
        'machine can see it, so give passwords in the file',
    )
    _add_hosts(parser)
    parser.add_argument(
        '--timeout',
        type=_seconds,
        default=10.0,
        metavar='SECONDS',
        help='how long to wait for each host (default: %(default)g)',
    )
    _add_top(parser)
    parser.add_argument(
        '--long',
        action='store_true',
        help='let why show numbers and a table of resources, and preview '
        'every VM',
    )
    parser.add_argument(
        '--json', action='store_true', help='answers as one JSON object'
    )
    return parser


def _add_hosts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--host', action='append', metavar='HOST', help='may be repeated'
    )
    parser.add_argument(
        '--hosts-from',
        type=pathlib.Path,
        metavar='FILE',
        help='names of hosts, one per line; # begins a comment',
    )
    parser.add_argument(
        '--all',
        action='store_true',
        help='every host that the agents who answer first have heard of',
    )


def _add_top(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--interval',
        type=_seconds,
        metavar='SECONDS',
        help='from one picture of top to the next (default: 2)',
    )
    parser.add_argument(
        '--count',
        type=_count,
        metavar='N',
        help='end top after so many pictures (default: at Ctrl-C)',
    )


def _preference(text: str) -> dict[str, float | None]:
    """Read ``UUID=NUMBER``.

    :raises ValueError: if the text is anything else.
    """
    uuid, separator, number = text.partition('=')
    try:
        if uuid and separator:
            return {uuid: float(number) if number else None}
    except ValueError:
        pass
    raise ValueError(f'prefer takes UUID=NUMBER, got {text!r}')


def _count(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(
            f'expected a whole number from 1 on, got {text!r}'
        )
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(
            f'expected seconds from 0.1 to 3600, got {text!r}'
        )
    return seconds
