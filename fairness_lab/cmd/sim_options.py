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
    subparsers = result.add_subparsers(required=True, metavar='COMMAND')
    for name, (text, add) in _COMMANDS.items():
        command = subparsers.add_parser(name, help=text)
        add(command)
        command.set_defaults(do=commands[name])
    _add_cluster_commands(
        subparsers.add_parser('cluster', help=_CLUSTER), commands
    )
    return result


def _add_cluster_commands(
    parser: argparse.ArgumentParser, commands: Commands
) -> None:
    subparsers = parser.add_subparsers(required=True, metavar='COMMAND')
    for name, (text, add) in _CLUSTER_COMMANDS.items():
        command = subparsers.add_parser(name, help=text)
        add(command)
        command.set_defaults(do=commands[f'cluster {name}'])


def _add_cluster_run_options(parser: argparse.ArgumentParser) -> None:
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
    _add_scenario_overrides(parser)
    _add_out_option(parser)


def _add_no_options(_parser: argparse.ArgumentParser) -> None:
    """Leave a command without options."""


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'scenario', help='name of a scenario, or path of a YAML file'
    )
    parser.add_argument('--metric', help='metric of the agents')
    parser.add_argument(
        '--policy', help='policy of the agents, or a reference'
    )
    _add_common_options(parser)
    _add_table_options(parser)
    parser.add_argument(
        '--no-report',
        action='store_true',
        help='write no page with pictures',
    )


def _add_compare_options(parser: argparse.ArgumentParser) -> None:
    _add_many_runs_options(parser)
    _add_common_options(parser)
    _add_table_options(parser)


def _add_sweep_options(parser: argparse.ArgumentParser) -> None:
    _add_many_runs_options(parser)
    _add_common_options(parser)
    parser.add_argument(
        '--vary',
        action='append',
        required=True,
        type=_parse_variation,
        metavar='KEY=VALUE,VALUE...',
        help='key of the scenario (such as reports.loss), or policy.NAME for '
        'a number of the policy; repeated: all combinations are run',
    )


def _add_scenarios_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'scenarios',
        nargs='*',
        metavar='SCENARIO',
        help='names of scenarios, or paths of YAML files (default: the'
        ' standard set)',
    )


def _add_many_runs_options(parser: argparse.ArgumentParser) -> None:
    _add_scenarios_argument(parser)
    parser.add_argument(
        '--metrics',
        type=_split_words,
        default=[],
        metavar='NAME,NAME...',
        help='metrics of the agents',
    )
    parser.add_argument(
        '--policies',
        type=_split_words,
        default=[],
        metavar='NAME,NAME...',
        help='policies of the agents, or references',
    )


def _add_common_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--rounds',
        type=_parse_positive,
        help='number of rounds; replaces the duration of the scenario',
    )
    _add_scenario_overrides(parser)
    parser.add_argument(
        '--share',
        default=ideal.DOMINANT,
        help='share that is compared with the ideal: %(default)s (default),'
        ' asset, or the name of a resource',
    )
    _add_out_option(parser)


def _add_reproduce_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'names',
        nargs='*',
        metavar='NAME',
        help='claims to reproduce, or documents with such claims (default:'
        ' all)',
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        '--list', action='store_true', help='list the claims; run nothing'
    )
    _add_out_option(what, is_required=False)
    parser.add_argument(
        '--within',
        type=_parse_positive,
        default=900,
        metavar='SECONDS',
        help='do not run claims that take longer than this (default:'
        ' %(default)s)',
    )
    parser.add_argument(
        '--seeds',
        type=_parse_positive,
        default=1,
        metavar='N',
        help='run N consecutive seeds, and show the spread of each number'
        ' (default: %(default)s)',
    )


def _add_new_options(parser: argparse.ArgumentParser) -> None:
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


def _add_cluster_compare_options(parser: argparse.ArgumentParser) -> None:
    _add_scenarios_argument(parser)
    parser.add_argument(
        '--orders',
        type=_split_words,
        default=[],
        metavar='NAME,NAME...',
        help='orders of the queue, each with parameters if needed, such as'
        ' fair_tree:charge=0 (default: all installed)',
    )
    parser.add_argument(
        '--victims',
        type=_split_words,
        default=[],
        metavar='NAME,NAME...',
        help='rules that choose the servers to evict (default:'
        f' {runs_module.VICTIMS} alone)',
    )
    parser.add_argument(
        '--seeds',
        type=_parse_positive,
        default=1,
        metavar='N',
        help='run N consecutive seeds; spread.json then has the means, their'
        ' spread, and 95 %% intervals of the differences from the first order'
        ' (default: %(default)s)',
    )
    _add_scenario_overrides(parser)
    _add_out_option(parser)


def _add_attack_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'scenario',
        nargs='?',
        default='rivals',
        help='scenario; its first user attacks (default: %(default)s)',
    )
    parser.add_argument(
        '--order', required=True, metavar='NAME', help=_ORDER_HELP
    )
    parser.add_argument(
        '--attack',
        action='append',
        choices=list(attacks.ATTACKS),
        help='attack to simulate; can be repeated (default: all)',
    )
    parser.add_argument(
        '--count',
        type=_parse_positive,
        default=1,
        help='number of clouds, with consecutive seeds (default: %(default)s)',
    )
    _add_scenario_overrides(parser)
    _add_out_option(parser)


def _add_market_options(parser: argparse.ArgumentParser) -> None:
    _add_seed_option(parser)
    _add_out_option(parser)


def _add_pack_options(parser: argparse.ArgumentParser) -> None:
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
        help="pack the VMs of this trace instead of an experiment's VMs; its"
        " schema must be that of Azure's packing trace",
    )
    parser.add_argument(
        '--hosts',
        type=_parse_positive,
        default=200,
        help='number of hosts for the VMs of --trace (default: %(default)s)',
    )
    _add_seed_option(parser)
    _add_out_option(parser)


def _add_tenants_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--count',
        type=_parse_positive,
        default=tenant_moves.SEEDS,
        help='number of clouds, with consecutive seeds (default: %(default)s)',
    )
    _add_seed_option(parser)
    _add_out_option(parser)


def _add_border_options(parser: argparse.ArgumentParser) -> None:
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
        help='rule that moves hosts between batch and cloud; can be repeated'
        ' (default: all)',
    )
    _add_scenario_overrides(parser)
    _add_out_option(parser)


def _add_seed_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--seed',
        type=_parse_natural,
        default=1,
        help='seed of all random numbers (default: %(default)s)',
    )


def _add_scenario_overrides(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--seed',
        type=_parse_natural,
        help='seed of all random numbers (default: that of the scenario)',
    )
    parser.add_argument(
        '--set',
        action='append',
        default=[],
        type=_parse_setting,
        metavar='KEY=VALUE',
        help='value for a key of the scenario, such as reports.loss=0.1',
    )


def _add_out_option(
    parser: argparse._ActionsContainer, *, is_required: bool = True
) -> None:
    parser.add_argument(
        '--out',
        type=pathlib.Path,
        required=is_required,
        metavar='DIR',
        help='new directory for the results; it must not exist, and it is'
        ' created only if the run succeeds',
    )


def _add_table_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--format',
        choices=sorted(files.TABLES),
        default='csv',
        help='format of the tables (default: %(default)s)',
    )
    parser.add_argument(
        '--detail', action='store_true', help='also write a table of all VMs'
    )


def _split_words(text: str) -> list[str]:
    return [word for word in text.split(',') if word]


def _parse_setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition('=')
    if not (key and equals and value):
        raise argparse.ArgumentTypeError(f'expected KEY=VALUE, got {text!r}')
    return key, value


def _parse_variation(text: str) -> tuple[str, list[str]]:
    key, value = _parse_setting(text)
    values = _split_words(value)
    if key.startswith(batches.POLICY):
        for number in values:
            _parse_number(number)
    return key, values


def _parse_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'expected a number, got {text!r}'
        ) from None


def _whole_number_parser(lowest: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and int(text) >= lowest):
            raise argparse.ArgumentTypeError(
                f'expected a whole number, at least {lowest}, got {text!r}'
            )
        return int(text)

    return read


_parse_positive = _whole_number_parser(1)
_parse_natural = _whole_number_parser(0)


_COMMANDS: Mapping[
    str, tuple[str, Callable[[argparse.ArgumentParser], None]]
] = {
    'list': (
        'list scenarios, metrics, policies and references',
        _add_no_options,
    ),
    'run': ('run a scenario', _add_run_options),
    'compare': (
        'run several scenarios, and compare them',
        _add_compare_options,
    ),
    'sweep': ('run with each of many settings', _add_sweep_options),
    'reproduce': ('reproduce numbers of the manual', _add_reproduce_options),
    'new': ('create a package with a plugin of your own', _add_new_options),
}
_CLUSTER = 'simulate queues of requests, and other work of the service'

_CLUSTER_COMMANDS: Mapping[
    str, tuple[str, Callable[[argparse.ArgumentParser], None]]
] = {
    'list': ('list scenarios and orders', _add_no_options),
    'run': ('run a scenario', _add_cluster_run_options),
    'compare': ('compare orders of the queue', _add_cluster_compare_options),
    'attack': ('show the gain of attacks', _add_attack_options),
    'market': (
        'show the migrations for a market of rates',
        _add_market_options,
    ),
    'pack': ('pack servers on few hosts', _add_pack_options),
    'tenants': (
        'move servers for the users who lack CPUs',
        _add_tenants_options,
    ),
    'border': (
        'move hosts between batch and cloud, and compare the rules for that',
        _add_border_options,
    ),
}
