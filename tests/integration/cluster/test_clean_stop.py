# SPDX-License-Identifier: Apache-2.0

"""What a process that is stopped leaves to the next one."""

import os
import signal
import time

import pytest

from nova_fairness.relay import topology
from tests.fixtures.patience import wait_for_value
from tests.integration.relay import test_processes as processes

NOWHERE = 'amqp://guest:guest@127.0.0.1:9//'
LEASE_S = 300
"""Longer than a test waits: who leads before did not wait for it."""


@pytest.fixture
def files(tmp_path):
    made = processes.Files(
        tmp_path, topology.Places(), broker=NOWHERE, lease=LEASE_S
    )
    made.upgrade()
    return made


def holder(store, process):
    return store.leader().holder.endswith(f':{process.pid}')


@pytest.mark.parametrize('next_one', [('run', 0), ('drain', 1)])
def test_a_stopped_leader_hands_over_at_once(files, next_one):
    command, code = next_one
    with files.store() as store:
        with files.process('cluster') as first:
            wait_for_value(lambda: holder(store, first))
        assert store.leader().holder == ''
        begun_s = time.monotonic()
        with files.process('cluster', command, code=code) as second:
            wait_for_value(lambda: holder(store, second))
        assert time.monotonic() - begun_s < LEASE_S
        assert store.leader().holder == ''


def test_a_standby_process_leads_at_once_after_a_clean_stop(files):
    with files.store() as store:
        with files.process('cluster') as first:
            wait_for_value(lambda: holder(store, first))
            with files.process('cluster') as second:
                time.sleep(1)
                assert holder(store, first)
                os.kill(first.pid, signal.SIGTERM)
                wait_for_value(lambda: holder(store, second))
                assert first.wait(30) == 0
        assert store.leader().holder == ''
