# SPDX-License-Identifier: Apache-2.0

"""A run from the scenario to the results."""

import pathlib
import sys

from fairness_lab.figures import progress as progress_module
from fairness_lab.figures import report
from fairness_lab.scenario import values as scenario_module
from fairness_lab.testbed import driver
from fairness_lab.testbed import qemu
from fairness_lab.testbed.nodes import groups

ACCELERATORS = {'qemu': None, 'qemu-tcg': 'tcg', 'qemu-kvm': 'kvm'}
"""Accelerator by name of the backend; ``None`` lets the machine choose."""


def run(
    scenario: scenario_module.Scenario,
    out: pathlib.Path,
    *,
    cache: pathlib.Path,
    backend_name: str,
    agents: bool,
    cpu_weight: float = groups.WEIGHT,
) -> bool:
    """Run a scenario, write the results and print them.

    :param out: new directory for recording and results.
    :param cache: directory kept between runs.
    :param backend_name: one of :data:`ACCELERATORS`.
    :param agents: whether agents run.
    :param cpu_weight: of nodes and guests, in weights of other programs.
    :returns: whether all checks of the scenario passed.
    :raises LabError: if the run fails.
    """
    progress = progress_module.RunProgress()
    backend = qemu.QemuBackend(
        scenario, out, cache, ACCELERATORS[backend_name], cpu_weight
    )
    driver.Driver(
        scenario, backend, out, agents=agents, progress=progress
    ).run()
    path = report.write(out, out)
    result = report.load(out)
    sys.stdout.write(report.table(result))
    progress.print_line(f'results: {path}')
    return report.has_passed(result)
