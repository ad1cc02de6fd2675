# SPDX-License-Identifier: Apache-2.0


"""The command line of ``nova-fairness-sim``."""

import argparse
from collections.abc import Callable
from collections.abc import Mapping
import pathlib

from fairness_lab.border_sim import runs
from fairness_lab.cmd import batches
from fairness_lab.ideal import ideal
from fairness_lab.measures import files
from fairness_lab.plugin_kit import packages
from fairness_lab.queue_sim import attacks
from fairness_lab.queue_sim import experiments
from fairness_lab.queue_sim import runs as runs_module
from fairness_lab.queue_sim import tenant_moves

Commands = Mapping[str, Callable[[argparse.Namespace], int]]

_EPILOG = """\
exit codes:
  0    done
  1    the run failed, its results could not be written, or a claim that
       was to be reproduced does not hold
  2    wrong usage, or a wrong scenario, trace, metric, policy or order
  130  interrupted
"""


_ORDER_HELP = (
    'order of the queue, with parameters if needed, such as fair_tree or'
    ' fair_tree:charge=0'
)


def parser(commands: Commands) -> argparse.ArgumentParser:
    """Parser of the command line.

    :param commands: what to do by command: list, run, compare, sweep,
        reproduce, new and each of ``cluster``, such as ``cluster run``.
    """
    result = argparse.ArgumentParser(
        prog='nova-fairness-sim',
        description='Run metrics and policies on simulated clouds, and '
        'compare them with the best possible allocation.',
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    adding = result.add_subparsers(required=True, metavar='COMMAND')
    for name, (text, add) in _COMMANDS.items():
        command = adding.add_parser(name, help=text)
        add(command)
        command.set_defaults(do=commands[name])
    _add_cluster(adding.add_parser('cluster', help=_CLUSTER), commands)
    return result


def _add_cluster(parser: argparse.ArgumentParser, commands: Commands) -> None:
    adding = parser.add_subparsers(required=True, metavar='COMMAND')
    for name, (text, add) in _CLUSTER_COMMANDS.items():
        command = adding.add_parser(name, help=text)
        add(command)
        command.set_defaults(do=commands[f'cluster {name}'])


def _add_cluster_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'scenario', help='name of a scenario, or path of a YAML file'
    )
    parser.add_argument(
        '--order', required=True, metavar='NAME', help=_ORDER_HELP
    )
    parser.add_argument(
        '--victims',
        default=runs_module.VICTIMS,
        metavar='NAME',
        help='rule that chooses the servers to evict (default: %(default)s)',
    )
    _add_drawn(parser)
    _add_out(parser)


def _add_nothing(_parser: argparse.ArgumentParser) -> None:
    """Leave a command without options."""


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'scenario', help='name of a scenario, or path of a YAML file'
    )
    parser.add_argument('--metric', help='metric of the agents')
    parser.add_argument(
        '--policy', help='policy of the agents, or a reference'
    )
    _add_common(parser)
    _add_tables(parser)
    parser.add_argument(
        '--no-report', action='store_true', help='draw no pictures'
    )


def _add_compare(parser: argparse.ArgumentParser) -> None:
    _add_many(parser)
    _add_common(parser)
    _add_tables(parser)


def _add_sweep(parser: argparse.ArgumentParser) -> None:
    _add_many(parser)
    _add_common(parser)
    parser.add_argument(
        '--vary',
        action='append',
        required=True,
        type=_varied,
        metavar='KEY=VALUE,VALUE...',
        help='key of the scenario (such as reports.loss), or policy.NAME for '
        'a number of the policy; given several times: all combinations',
    )


def _add_scenarios(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'scenarios',
        nargs='*',
        metavar='SCENARIO',
        help='names or paths (default: the standard set)',
    )


def _add_many(parser: argparse.ArgumentParser) -> None:
    _add_scenarios(parser)
    parser.add_argument(
        '--metrics', type=_words, default=[], metavar='NAME,NAME...'
    )
    parser.add_argument(
        '--policies',
        type=_words,
        default=[],
        metavar='NAME,NAME...',
        help='policies of the agents, or references',
    )


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--rounds',
        type=_positive,
        help='number of rounds, replaces the duration',
    )
    _add_drawn(parser)
    parser.add_argument(
        '--share',
        default=ideal.DOMINANT,
        help='which share is compared with the ideal: %(default)s (default), '
        'asset or the name of a resource',
    )
    _add_out(parser)


def _add_reproduce(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'names',
        nargs='*',
        metavar='NAME',
        help='claims, or documents whose claims are meant (default: all)',
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        '--list', action='store_true', help='only list them, and run nothing'
    )
    _add_out(what, is_required=False)
    parser.add_argument(
        '--within',
        type=_positive,
        default=900,
        metavar='SECONDS',
        help='what would take longer is not run (default: %(default)s)',
    )
    parser.add_argument(
        '--seeds',
        type=_positive,
        default=1,
        metavar='N',
        help='also run the seeds that come next, N in all, and tell how far'
        ' numbers spread (default: %(default)s)',
    )


def _add_new(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'kind', choices=list(packages.KINDS), help='kind of the plugin'
    )
    parser.add_argument(
        'name',
        metavar='NAME',
        help='name of the package and of the plugin, such as burst-credits',
    )
    parser.add_argument(
        '--out',
        type=pathlib.Path,
        metavar='DIR',
        help='new directory of the package (default: NAME)',
    )


def _add_cluster_compare(parser: argparse.ArgumentParser) -> None:
    _add_scenarios(parser)
    parser.add_argument(
        '--orders',
        type=_words,
        default=[],
        metavar='NAME,NAME...',
        help='orders of the queue, each with parameters if needed, such as'
        ' fair_tree:charge=0 (default: all installed)',
    )
    parser.add_argument(
        '--victims',
        type=_words,
        default=[],
        metavar='NAME,NAME...',
        help='rules that choose the servers to evict (default:'
        f' {runs_module.VICTIMS} alone)',
    )
    parser.add_argument(
        '--seeds',
        type=_positive,
        default=1,
        metavar='N',
        help='also run the seeds that come next, N in all, and write means,'
        ' their spread and 95 %% intervals of differences from the first'
        ' order to spread.json (default: %(default)s)',
    )
    _add_drawn(parser)
    _add_out(parser)


def _add_cluster_attack(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'scenario',
        nargs='?',
        default='rivals',
        help='whose first user attacks (default: %(default)s)',
    )
    parser.add_argument(
        '--order', required=True, metavar='NAME', help=_ORDER_HELP
    )
    parser.add_argument(
        '--attack',
        action='append',
        choices=list(attacks.ATTACKS),
        help='what is tried; may be given again (default: all)',
    )
    parser.add_argument(
        '--count',
        type=_positive,
        default=1,
        help='clouds of one seed after the other (default: %(default)s)',
    )
    _add_drawn(parser)
    _add_out(parser)


def _add_cluster_market(parser: argparse.ArgumentParser) -> None:
    _add_seed(parser)
    _add_out(parser)


def _add_cluster_pack(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'experiment',
        nargs='*',
        metavar='EXPERIMENT',
        help='any of '
        + ', '.join(experiments.EXPERIMENTS)
        + ' (default: all, which takes an hour)',
    )
    parser.add_argument(
        '--trace',
        type=pathlib.Path,
        metavar='FILE',
        help="pack the VMs of a trace with the schema of Azure's for packing"
        ' instead',
    )
    parser.add_argument(
        '--hosts',
        type=_positive,
        default=200,
        help='that there are for the trace (default: %(default)s)',
    )
    _add_seed(parser)
    _add_out(parser)


def _add_cluster_tenants(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--count',
        type=_positive,
        default=tenant_moves.SEEDS,
        help='clouds of one seed after the other (default: %(default)s)',
    )
    _add_seed(parser)
    _add_out(parser)


def _add_cluster_border(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'scenario',
        nargs='?',
        default='week',
        help='name of a scenario, or path of a YAML file (default:'
        ' %(default)s)',
    )
    parser.add_argument(
        '--mover',
        action='append',
        choices=runs.MOVERS,
        help='what moves the border; may be given again (default: all)',
    )
    _add_drawn(parser)
    _add_out(parser)


def _add_seed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--seed',
        type=_natural,
        default=1,
        help='of all that is drawn at random (default: %(default)s)',
    )


def _add_drawn(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--seed', type=_natural, help='of all that is drawn at random'
    )
    parser.add_argument(
        '--set',
        action='append',
        default=[],
        type=_setting,
        metavar='KEY=VALUE',
        help='value for a key of the scenario, such as reports.loss=0.1',
    )


def _add_out(
    parser: argparse._ActionsContainer, *, is_required: bool = True
) -> None:
    parser.add_argument(
        '--out',
        type=pathlib.Path,
        required=is_required,
        metavar='DIR',
        help='new directory; appears whole or not at all',
    )


def _add_tables(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--format',
        choices=sorted(files.TABLES),
        default='csv',
        help='format of the tables (default: %(default)s)',
    )
    parser.add_argument(
        '--detail', action='store_true', help='write a table of all VMs too'
    )


def _words(text: str) -> list[str]:
    return [word for word in text.split(',') if word]


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition('=')
    if not (key and equals and value):
        raise argparse.ArgumentTypeError(f'expected KEY=VALUE, got {text!r}')
    return key, value


def _varied(text: str) -> tuple[str, list[str]]:
    key, value = _setting(text)
    values = _words(value)
    if key.startswith(batches.POLICY):
        for number in values:
            _number(number)
    return key, values


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'expected a number, got {text!r}'
        ) from None


def _at_least(lowest: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and int(text) >= lowest):
            raise argparse.ArgumentTypeError(
                f'expected a whole number, at least {lowest}, got {text!r}'
            )
        return int(text)

    return read


_positive = _at_least(1)
_natural = _at_least(0)


_COMMANDS: Mapping[
    str, tuple[str, Callable[[argparse.ArgumentParser], None]]
] = {
    'list': (
        'list scenarios, metrics, policies and references',
        _add_nothing,
    ),
    'run': ('run a scenario', _add_run),
    'compare': ('run several, side by side', _add_compare),
    'sweep': ('run with many settings', _add_sweep),
    'reproduce': ('make numbers of the manual again', _add_reproduce),
    'new': ('create a package with a plugin of your own', _add_new),
}
_CLUSTER = 'requests that wait: orders of the queue on simulated clouds'

_CLUSTER_COMMANDS: Mapping[
    str, tuple[str, Callable[[argparse.ArgumentParser], None]]
] = {
    'list': ('list scenarios and orders', _add_nothing),
    'run': ('run a scenario', _add_cluster_run),
    'compare': ('run orders side by side', _add_cluster_compare),
    'attack': ('say what attacks gain', _add_cluster_attack),
    'market': ('say what a market of rates moves', _add_cluster_market),
    'pack': ('pack servers on few hosts', _add_cluster_pack),
    'tenants': ('move servers for who lacks CPUs', _add_cluster_tenants),
    'border': (
        'move hosts between batch and cloud, and compare who moves them',
        _add_cluster_border,
    ),
}
