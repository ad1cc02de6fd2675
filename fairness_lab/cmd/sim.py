# SPDX-License-Identifier: Apache-2.0


"""``nova-fairness-sim``: metrics, policies and orders on simulated clouds."""

import argparse
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import dataclasses
import pathlib
import signal
import sys
from types import FrameType
import warnings

# Libraries import eventlet where it is installed; this program never runs it.
warnings.filterwarnings('ignore', message=r'\s*Eventlet is deprecated')

from fairness_lab.cmd import batches  # noqa: E402
from fairness_lab.cmd import sim_cluster  # noqa: E402
from fairness_lab.cmd import sim_new  # noqa: E402
from fairness_lab.cmd import sim_options  # noqa: E402
from fairness_lab.cmd import sim_reproduce  # noqa: E402
from fairness_lab.figures import page  # noqa: E402
from fairness_lab.figures import progress  # noqa: E402
from fairness_lab.measures import files  # noqa: E402
from fairness_lab.measures import running  # noqa: E402
from fairness_lab.node_sim import references  # noqa: E402
from fairness_lab.scenario import experiment  # noqa: E402
from fairness_lab.scenario import programs  # noqa: E402
from nova_fairness import exception  # noqa: E402
from nova_fairness import plugins  # noqa: E402
from nova_fairness.runtime import closed_output  # noqa: E402

DONE = 0
FAILED = 1
BAD_USAGE = 2
INTERRUPTED = 130

_WRONG = (
    exception.BadPluginName,
    exception.BadScenario,
    exception.BadTrace,
    exception.UnknownShare,
    exception.UnknownParameter,
)


def main(arguments: list[str] | None = None) -> int:
    """Run the command.

    :param arguments: without the program; ``None`` for those of the process.
    :returns: the exit code.
    """
    options = sim_options.parser(
        {
            'list': _list_scenarios,
            'run': _run,
            'compare': _compare,
            'sweep': _sweep,
            'reproduce': sim_reproduce.reproduce,
            'new': sim_new.create,
            **sim_cluster.COMMANDS,
        }
    ).parse_args(arguments)
    try:
        with _interruptible(), closed_output.exit_if_closed():
            return int(options.do(options))
    except exception.UnknownPlugin as error:
        # What is installed in another environment is not found.
        return _print_error(f'{error}; looked in {sys.prefix}', BAD_USAGE)
    except _WRONG as error:
        return _print_error(error, BAD_USAGE)
    except exception.FairnessError as error:
        return _print_error(error, FAILED)
    except KeyboardInterrupt:
        return _print_error('interrupted', INTERRUPTED)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _print_error(error: object, code: int) -> int:
    sys.stderr.write(f'nova-fairness-sim: {error}\n')
    return code


def _overrides(options: argparse.Namespace) -> dict[str, str]:
    found = dict(options.set)
    for key in ('rounds', 'seed'):
        if getattr(options, key) is not None:
            found[key] = str(getattr(options, key))
    return found


def _list_scenarios(_options: argparse.Namespace) -> int:
    found = [experiment.find(name) for name in programs.SIMULATOR.names()]
    known = {
        'scenarios': {item.name: item.cloud.description for item in found},
        'metrics': plugins.describe_metrics(),
        'policies': plugins.describe_policies(),
        'references': {
            **{
                name: item.description
                for name, item in references.ALLOCATORS.items()
            },
            **references.WITHOUT_AGENTS,
        },
    }
    for title, entries in known.items():
        sys.stdout.write(f'{title}:\n')
        for name, text in sorted(entries.items()):
            sys.stdout.write(f'  {name}\n      {text}\n')
    return DONE


def _run(options: argparse.Namespace) -> int:
    choice = running.RunOptions(
        metric=options.metric,
        policy=options.policy,
        share=options.share,
        kind=options.format,
        detail=options.detail,
    )
    scenario = experiment.find(options.scenario, _overrides(options))
    made = running.setup(scenario, choice)
    if warning := plugins.warning(made.metric, made.policy):
        sys.stderr.write(f'nova-fairness-sim: warning: {warning}\n')
    with files.new_directory(options.out) as directory:
        result = running.run(
            scenario, choice, directory, progress.BatchProgress()
        )
        if not options.no_report and options.format == 'csv':
            page.write_run(directory, result, directory)
    _print_runs([batches.compared_values(result)], options.out)
    return DONE


def _runs_to_compare(options: argparse.Namespace) -> batches.ComparedRuns:
    return batches.ComparedRuns(
        scenarios=options.scenarios or programs.SIMULATOR.names(),
        metrics=options.metrics,
        policies=options.policies,
        overrides=_overrides(options),
        choice=running.RunOptions(share=options.share),
    )


def _compare(options: argparse.Namespace) -> int:
    asked = _runs_to_compare(options)
    asked = dataclasses.replace(
        asked,
        choice=dataclasses.replace(
            asked.choice, kind=options.format, detail=options.detail
        ),
    )
    batches.check_scenarios_and_plugins(asked)
    with files.new_directory(options.out) as directory:
        content = batches.compare(asked, directory, progress.BatchProgress())
    _print_runs(content['runs'], options.out)
    return DONE


def _sweep(options: argparse.Namespace) -> int:
    asked, grid = _runs_to_compare(options), dict(options.vary)
    for point in batches.sweep_points(asked, grid):
        batches.check_scenarios_and_plugins(point.asked)
    with files.new_directory(options.out) as directory:
        content = batches.sweep(
            asked, grid, directory, progress.BatchProgress()
        )
    _print_runs(content['runs'], options.out)
    return DONE


def _print_runs(runs: Sequence[batches.Json], where: pathlib.Path) -> None:
    sys.stdout.write(f'{batches.runs_table(runs)}{where}\n')


if __name__ == '__main__':
    sys.exit(main())
