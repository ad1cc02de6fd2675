# SPDX-License-Identifier: Apache-2.0

"""Command line of ``nova-fairness-ctl``."""

import argparse
import pathlib

from nova_fairness import version

PROGRAM = 'nova-fairness-ctl'

_EPILOG = """\
commands:
  set-metric NAME   set the metric of the whole domain
  set-policy NAME   set the policy of the whole domain
  pause             restore the original values of all controls, and stop
                    changing them
  resume            change weights again after a pause
  reset             set all weights to neutral and start again
  prefer UUID=N     set the preference of a VM: it gets N times (0.01 to 100)
                    the part of each other VM of its owner; UUID= removes it
  status            show the state of the agents
  instances         show heaviness and weights of the VMs
  users             show the heaviness of the users
  projects          show the heaviness of the projects
  plugins           show the installed metrics and policies
  why UUID          explain the weights of a VM
  preview [METRIC]  show the CPU time that users would gain or lose if weights
                    were enforced, with one metric or with each installed one
  top               show the use of all users and their waiting VMs, and
                    refresh until Ctrl-C

exit codes:
  0    every host executed the command
  1    some hosts were not reached, or refused the command
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
"""Command that queries the agents repeatedly."""

EPOCH_COMMANDS = ('set-metric', 'set-policy')
"""Commands that create one epoch for all hosts."""

NAMED = (*EPOCH_COMMANDS, 'prefer', WHY)


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    """Parse the command line; the program ends with code 2 if it is wrong.

    :param arguments: arguments without the name of the program; ``None`` for
        the arguments of the process.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    named = options.name is not None
    if options.command != PREVIEW and named != (options.command in NAMED):
        parser.error(
            f'{options.command}: expected '
            + ('a NAME' if options.command in NAMED else 'no NAME')
        )
    if options.command == 'prefer':
        try:
            options.preferences = _preference(options.name)
        except ValueError as error:
            parser.error(str(error))
    if not (options.host or options.hosts_from or options.all):
        parser.error('hosts: none given; give --host, --hosts-from or --all')
    if options.command != TOP and (options.interval or options.count):
        parser.error('--interval and --count are valid for top only')
    if options.command == TOP and options.json:
        parser.error(
            '--json is not valid for top; use the commands users and instances'
        )
    if options.long and options.command not in (WHY, PREVIEW):
        parser.error('--long is valid for why and preview only')
    if options.all and (options.host or options.hosts_from):
        parser.error('--all is not valid together with --host or --hosts-from')
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description='Query and control the agents of a fairness domain.',
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
        help='configuration file with transport_url, the domain and the keys '
        '(default: the file of the agent, in /etc/nova-fairness)',
    )
    parser.add_argument(
        '--transport-url',
        metavar='URL',
        help='URL of the transport, instead of the configured one; other '
        'users of this machine can see it, so write passwords into the file',
    )
    _add_hosts(parser)
    parser.add_argument(
        '--timeout',
        type=_seconds,
        default=10.0,
        metavar='SECONDS',
        help='longest wait for each host (default: %(default)g)',
    )
    _add_top(parser)
    parser.add_argument(
        '--long',
        action='store_true',
        help='with why: also show numbers and a table of resources; with '
        'preview: show each VM',
    )
    parser.add_argument(
        '--json',
        action='store_true',
        help='print the answers as one JSON object',
    )
    return parser


def _add_hosts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--host',
        action='append',
        metavar='HOST',
        help='name of a host; can be repeated',
    )
    parser.add_argument(
        '--hosts-from',
        type=pathlib.Path,
        metavar='FILE',
        help='file with names of hosts, one per line; # begins a comment',
    )
    parser.add_argument(
        '--all',
        action='store_true',
        help='all hosts of the domain, according to the first agents that '
        'answer',
    )


def _add_top(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--interval',
        type=_seconds,
        metavar='SECONDS',
        help='time between two refreshes of top (default: 2)',
    )
    parser.add_argument(
        '--count',
        type=_count,
        metavar='N',
        help='number of refreshes after which top ends (default: at Ctrl-C)',
    )


def _preference(text: str) -> dict[str, float | None]:
    """Parse ``UUID=NUMBER``; an empty number removes the preference.

    :raises ValueError: if the text has another form.
    """
    uuid, separator, number = text.partition('=')
    try:
        if uuid and separator:
            return {uuid: float(number) if number else None}
    except ValueError:
        pass
    raise ValueError(f'prefer: got {text!r}, expected UUID=NUMBER')


def _count(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(
            f'expected a whole number of 1 or more, got {text!r}'
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
