# SPDX-License-Identifier: Apache-2.0

"""Runs some tests of oslo.messaging's own functional suite: a program.

Without arguments it prints the names of all of them, one per line. Given a
file with such names it runs those, and writes to a second file as JSON which
passed, which were skipped and why, and what went wrong.

The suite patches itself with eventlet and asks for its executor; the driver
needs native threads. So patching does nothing here, and the green executor is
the one of threads.
"""

import collections
import json
import pathlib
import sys
import unittest

import eventlet
import futurist
import testtools
from testtools import testsuite

eventlet.monkey_patch = lambda: None
futurist.GreenThreadPoolExecutor = futurist.ThreadPoolExecutor

# What is left out tests how RabbitMQ's nodes replace each other.
MODULES = (
    'oslo_messaging.tests.functional.test_functional',
    'oslo_messaging.tests.functional.notify.test_logger',
)


class Outcome(testtools.TestResult):
    """Remembers what became of each test."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = collections.defaultdict(list)

    def addSuccess(self, test, details=None):
        """Note that a test passed."""
        self.ended['passed'].append(test.id())

    def addSkip(self, test, reason=None, details=None):
        """Note that a test was skipped."""
        why = reason or details['reason'].as_text()
        self.ended['skipped'].append((test.id(), why))

    def addFailure(self, test, err=None, details=None):
        """Note that a test failed."""
        super().addFailure(test, err, details)
        self.ended['failed'].append((test.id(), self.failures[-1][1]))

    def addError(self, test, err=None, details=None):
        """Note that a test ended with an error."""
        super().addError(test, err, details)
        self.ended['failed'].append((test.id(), self.errors[-1][1]))


def main() -> None:
    """Do what the arguments say."""
    loader = unittest.TestLoader()
    suite = loader.loadTestsFromNames(MODULES)
    tests = {test.id(): test for test in testsuite.iterate_tests(suite)}
    if len(sys.argv) == 1:
        print('\n'.join(tests))
        return
    outcome = Outcome()
    for name in pathlib.Path(sys.argv[1]).read_text().splitlines():
        tests[name].run(outcome)
    pathlib.Path(sys.argv[2]).write_text(json.dumps(outcome.ended))


if __name__ == '__main__':
    main()
