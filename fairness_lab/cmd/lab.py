# SPDX-License-Identifier: Apache-2.0

"""``nova-fairness-lab``: scenarios on real VMs, and their comparison."""

import warnings

# Libraries import eventlet where it is installed; this program never runs it.
warnings.filterwarnings('ignore', message=r'\s*Eventlet is deprecated')

# The backend must be chosen before anything else of oslo is imported.
from oslo_service import backend  # noqa: E402

backend.init_backend(backend.BackendType.THREADING)

import argparse  # noqa: E402
import dataclasses  # noqa: E402
import functools  # noqa: E402
import math  # noqa: E402
import pathlib  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from types import FrameType  # noqa: E402

from fairness_lab.scenario import programs  # noqa: E402
from fairness_lab.scenario import reader  # noqa: E402
from fairness_lab.scenario import values as scenario_module  # noqa: E402
from fairness_lab.testbed.guests import image  # noqa: E402
from fairness_lab.testbed.nodes import groups  # noqa: E402
from nova_fairness import exception  # noqa: E402
from nova_fairness import plugins  # noqa: E402
from nova_fairness.runtime import closed_output  # noqa: E402
from oslo_messaging_zmq import errors  # noqa: E402

DONE = 0
FAILED = 1
BAD_USAGE = 2
LACKING = 3
INTERRUPTED = 130

_EPILOG = """\
exit codes:
  0    done
  1    the run failed, or a check did not pass
  2    wrong usage, or a wrong scenario
  3    something that the laboratory needs is missing on this machine
  130  interrupted
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command.

    :param arguments: without the program; ``None`` for those of the process.
    :returns: the exit code.
    """
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)
    try:
        with closed_output.exit_if_closed():
            return int(options.do(options))
    except (exception.BadScenario, exception.UnknownPlugin) as error:
        return _print_error(error, BAD_USAGE)
    except exception.LabEnvironmentError as error:
        return _print_error(error, LACKING)
    except (exception.FairnessError, errors.MessagingError) as error:
        return _print_error(error, FAILED)
    except KeyboardInterrupt:
        return _print_error('interrupted', INTERRUPTED)


def _interrupt(_bounded_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _print_error(error: object, code: int) -> int:
    sys.stderr.write(f'nova-fairness-lab: {error}\n')
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='nova-fairness-lab',
        description='Run scenarios of users who compete for nodes, on real '
        'VMs, and compare runs.',
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar='COMMAND')
    listing = commands.add_parser('list', help='list the scenarios')
    listing.set_defaults(do=_list_scenarios)
    _add_run(commands.add_parser('run', help='run a scenario'))
    comparing = commands.add_parser('compare', help='compare two runs')
    comparing.add_argument('first', type=pathlib.Path, metavar='A')
    comparing.add_argument('second', type=pathlib.Path, metavar='B')
    comparing.add_argument(
        '--out',
        type=pathlib.Path,
        metavar='DIR',
        help='directory for the comparison (default: B)',
    )
    comparing.set_defaults(do=_compare)
    return parser


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'scenario', help='name of a scenario, or path of a YAML file'
    )
    parser.add_argument('--metric', help='metric of the agents')
    parser.add_argument('--policy', help='policy of the agents')
    parser.add_argument(
        '--interval',
        type=_seconds,
        metavar='SECONDS',
        help='length of a round, at least 0.2',
    )
    parser.add_argument(
        '--duration',
        type=_seconds,
        metavar='SECONDS',
        help='length of the load in seconds; the times of its steps and events'
        ' change in proportion',
    )
    parser.add_argument(
        '--no-agents', action='store_true', help='run without agents'
    )
    parser.add_argument(
        '--full',
        action='store_true',
        help='run ten times as long as the scenario states',
    )
    parser.add_argument(
        '--out',
        type=pathlib.Path,
        metavar='DIR',
        help='new directory for the results (default: results/NAME-TIME)',
    )
    _add_machine(parser)
    parser.set_defaults(do=_run)


def _add_machine(parser: argparse.ArgumentParser) -> None:
    """Options of what nodes and guests are made of."""
    parser.add_argument(
        '--backend',
        choices=('qemu', 'qemu-tcg', 'qemu-kvm'),
        default='qemu',
        help='qemu: KVM if a guest boots with it, else emulation (default)',
    )
    parser.add_argument(
        '--cpu-weight',
        type=_weight,
        metavar='TIMES',
        default=groups.WEIGHT,
        help='CPU weight of all nodes and guests together, relative to any '
        'other program of this machine, 1 to 100 (default: %(default)g); '
        'choose a smaller weight to work on the machine meanwhile: other '
        'programs then make the nodes smaller',
    )
    parser.add_argument(
        '--cache',
        type=pathlib.Path,
        metavar='DIR',
        default=image.default_cache(),
        help="directory for the guests' image (default: %(default)s)",
    )


def _bounded_number(what: str, low: float, high: float, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not low <= number <= high:
        raise argparse.ArgumentTypeError(
            f'expected {what}, {low:g} to {high:g}, got {text!r}'
        )
    return number


_seconds = functools.partial(_bounded_number, 'seconds', 0.2, 1e6)
_weight = functools.partial(_bounded_number, 'times', 1, 100)


def _list_scenarios(_options: argparse.Namespace) -> int:
    for name in programs.LABORATORY.names():
        found = reader.find(name, programs.LABORATORY)
        sys.stdout.write(
            f'{name}  ({found.duration_s:g} s)\n    {found.description}\n'
        )
    return DONE


def _chosen_scenario(options: argparse.Namespace) -> scenario_module.Scenario:
    """Scenario with the options of the command line."""
    found = reader.find(options.scenario, programs.LABORATORY)
    agents = dataclasses.replace(
        found.agents,
        metric=options.metric or found.agents.metric,
        policy=options.policy or found.agents.policy,
    )
    found = dataclasses.replace(
        found, agents=agents, interval_s=options.interval or found.interval_s
    )
    if options.full:
        found = found.with_duration(10 * found.duration_s)
    if options.duration:
        found = found.with_duration(options.duration)
    _check_plugin('metric', agents.metric, plugins.metric_names())
    _check_plugin('policy', agents.policy, plugins.policy_names())
    return found


def _check_plugin(noun: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise exception.UnknownPlugin(
            f'there is no {noun} {name}: expected one of {", ".join(known)}'
        )


def _run(options: argparse.Namespace) -> int:
    from fairness_lab.testbed import running  # needs libvirt, list does not

    found = _chosen_scenario(options)
    warning = plugins.warning(found.agents.metric, found.agents.policy)
    if warning and not options.no_agents:
        sys.stderr.write(f'nova-fairness-lab: warning: {warning}\n')
    stamp = time.strftime('%Y%m%d-%H%M%S')
    out = options.out or pathlib.Path('results') / f'{found.name}-{stamp}'
    passed = running.run(
        found,
        out.absolute(),
        cache=options.cache.absolute(),
        backend_name=options.backend,
        agents=not options.no_agents,
        cpu_weight=options.cpu_weight,
    )
    return DONE if passed else FAILED


def _compare(options: argparse.Namespace) -> int:
    from fairness_lab.figures import compare  # needs matplotlib, list does not

    out = options.out or options.second
    sys.stdout.write(compare.compare(options.first, options.second, out))
    return DONE


if __name__ == '__main__':
    sys.exit(main())
