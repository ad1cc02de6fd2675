# SPDX-License-Identifier: Apache-2.0

"""The command that powers hosts, run for real."""

import time

import pytest

from nova_fairness.cluster.move_plans import host_power
from nova_fairness.cluster.openstack import nova


def powered(tmp_path, *command, longest_s=20.0):
    """Power a host down; give what the command noted."""
    service = nova.ComputeService(
        'u', 'h1; echo', False, True, host_power.MARK
    )
    rules = host_power.HostPowerOptions(True, 0.0, 0, command, longest_s)
    now = [0.0]
    made = host_power.HostPower(None, rules, lambda: now[0])
    made._rested['h1; echo'] = now[0]
    now[0] = host_power.SETTLES_S
    for _ in range(3):
        made._wake_or_power_down(service, False)
    noted = tmp_path / 'noted'
    return noted.read_text().splitlines() if noted.exists() else []


@pytest.fixture
def program(tmp_path):
    path = tmp_path / 'power'

    def written(last):
        path.write_text(
            f'#!/bin/sh\nfor each; do echo "$each"; done >> {tmp_path}/noted\n'
            f'{last}\n'
        )
        path.chmod(0o755)
        return str(path)

    return written


def test_the_power_command_runs_once_without_a_shell(tmp_path, program):
    assert powered(tmp_path, program('exit 0'), '$HOME') == [
        '$HOME', 'down', 'h1; echo',
    ]  # fmt: skip


def test_a_failing_or_missing_power_command_is_reported(
    tmp_path, program, caplog
):
    powered(tmp_path, program('exit 3'))
    assert 'ended with status 3' in caplog.text
    powered(tmp_path, '/nowhere/power')
    assert 'No such file' in caplog.text


def test_a_power_command_over_its_time_limit_is_killed(
    tmp_path, program, caplog
):
    begun = time.monotonic()
    powered(tmp_path, program('exec sleep 600'), longest_s=1.0)
    assert time.monotonic() - begun < 300
    assert 'timed out' in caplog.text
