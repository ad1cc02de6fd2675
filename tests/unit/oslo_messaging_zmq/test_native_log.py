# SPDX-License-Identifier: Apache-2.0

"""Logging from native threads, with and without eventlet."""

import pathlib
import subprocess
import sys
import textwrap

from oslo_messaging_zmq import native_log
from oslo_messaging_zmq import threads

TOP = pathlib.Path(__file__).resolve().parents[3]


def test_without_eventlet_everybody_logs_at_once(caplog):
    log = native_log.Log('some.name')
    native_log.prepare()
    log.warning('%d things', 3)
    threads.start('test', log.error, 'by %s', 'a thread').join()
    assert [
        (record.name, record.levelname, record.getMessage())
        for record in caplog.records
    ] == [
        ('some.name', 'WARNING', '3 things'),
        ('some.name', 'ERROR', 'by a thread'),
    ]


def in_eventlet(script):
    begin = """
        import eventlet
        eventlet.monkey_patch()
        import logging, sys
        from oslo_messaging_zmq import threads as native, native_log

        class Handler(logging.StreamHandler):
            seen = 0

            def emit(self, record):
                super().emit(record)
                self.seen += 1

            def wait(self):
                while not self.seen:
                    eventlet.sleep(0.01)

        handler = Handler(sys.stdout)
        logging.getLogger().addHandler(handler)
        log = native_log.Log('some.name')
    """
    done = subprocess.run(
        [
            sys.executable,
            '-W',
            'ignore',
            '-c',
            textwrap.dedent(begin) + textwrap.dedent(script),
        ],
        capture_output=True,
        cwd=TOP,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_native_thread_does_not_wait_for_a_green_lock():
    script = """
        native_log.prepare()
        handler.acquire()  # as a green thread in the middle of writing
        ended = native.Waiter()

        def work():
            log.warning('%d things', 3)
            ended.set()

        native.start('test', work)
        print(ended.wait(30), flush=True)
        handler.release()
        handler.wait()
    """
    assert in_eventlet(script) == 'True\n3 things\n'


def test_green_threads_log_at_once():
    script = """
        native_log.prepare()
        native_log.prepare()
        log.error('%d things', 3)
    """
    assert in_eventlet(script) == '3 things\n'


def test_a_forked_process_writes_its_own_lines():
    script = """
        import os
        native_log.prepare()
        eventlet.sleep(0)
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            eventlet.hubs.use_hub()
            native_log.prepare()
            native.start('test', log.warning, 'of the child')
            handler.wait()
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(pid, 0)
        native.start('test', log.warning, 'of the parent')
        handler.wait()
    """
    assert in_eventlet(script) == 'of the child\nof the parent\n'
