# SPDX-License-Identifier: Apache-2.0

"""The driver as oslo.messaging loads it."""

import os
import subprocess
import sys

from oslo_config import cfg
import oslo_messaging
import pytest

from oslo_messaging_zmq import driver

URL = 'zmq+redis://127.0.0.1:1/?insecure=true'


def test_the_driver_is_found_by_its_entry_point():
    transport = oslo_messaging.get_rpc_transport(cfg.CONF, URL)
    assert isinstance(transport._driver, driver.ZmqDriver)
    transport._driver.require_features(requeue=True)
    transport.cleanup()


def test_an_unknown_query_is_refused():
    with pytest.raises(oslo_messaging.InvalidTransportURL):
        oslo_messaging.get_rpc_transport(
            cfg.CONF, 'zmq+redis://127.0.0.1:1/?insecrue=true'
        )


def test_a_transport_that_was_cleaned_up_sends_no_more():
    transport = oslo_messaging.get_rpc_transport(cfg.CONF, URL)
    transport.cleanup()
    client = oslo_messaging.get_rpc_client(
        transport, oslo_messaging.Target(topic='t')
    )
    with pytest.raises(oslo_messaging.MessageDeliveryFailure):
        client.cast({}, 'm')


PATCHED = """
import eventlet
eventlet.monkey_patch({modules})
from oslo_config import cfg
import oslo_messaging
try:
    oslo_messaging.get_rpc_transport(cfg.CONF, {url!r})
except oslo_messaging.exceptions.ConfigurationError as error:
    print(error)
else:
    print('loaded')
"""


def loaded_with(modules):
    program = PATCHED.format(modules=modules, url=URL)
    return subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout


@pytest.mark.parametrize(
    ('modules', 'found'),
    [
        ('', 'eventlet has patched select, socket, thread, time in'),
        ('socket=True', 'eventlet has patched socket in'),
    ],
)
def test_a_process_that_eventlet_has_patched_is_refused(modules, found):
    said = loaded_with(modules)
    assert found in said
    assert 'OS_NOVA_DISABLE_EVENTLET_PATCHING=true' in said


def test_an_unpatched_eventlet_is_accepted():
    assert loaded_with('os=True') == 'loaded\n'


def test_a_lock_that_was_held_during_a_fork_does_not_stop_the_child():
    transport = oslo_messaging.get_rpc_transport(cfg.CONF, URL)
    with transport._driver._process().lock:
        pid = os.fork()
        if pid == 0:
            is_free = not transport._driver._process().lock.locked()
            os._exit(0 if is_free else 1)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    transport.cleanup()
