# SPDX-License-Identifier: Apache-2.0

"""The loop of controllers of hosts: no fault ends it, and each is said."""

import logging
import threading
import types

import pytest

from nova_fairness import exception
from nova_fairness.cluster import host_controller
from nova_fairness.cluster import quarantine


class FakeController(host_controller.HostController[str]):
    """Raises one error each cycle, and stops after the last."""

    name = 'fake'
    idle = 'fake: nothing is done'

    def __init__(self, errors, epoch=7, fault=''):
        self.errors = list(errors)
        service = types.SimpleNamespace(
            quarantine=quarantine.Quarantine(),
            leads=lambda: epoch,
            clocks=types.SimpleNamespace(fault=fault),
            last=lambda: None,
        )
        super().__init__(service, threading.Event(), 0.0)

    def cycle(self):
        error = self.errors.pop(0)
        if not self.errors:
            self._stopped.set()
        if error is not None:
            raise error
        return True


def said(caplog, *errors):
    caplog.set_level(logging.INFO)
    made = FakeController(errors)
    made.run()
    assert made.errors == []
    return [
        (line.levelname, line.getMessage())
        for line in caplog.records
        if line.name == host_controller.__name__
    ], made


def test_a_repeated_error_of_the_cloud_is_logged_once(caplog):
    error = exception.CloudAway('compute answers 503')
    lines, made = said(caplog, error, error, None)
    text = 'fake: nothing is done: compute answers 503; it is tried again'
    assert lines == [('WARNING', text)]
    assert made._service.quarantine.is_empty


@pytest.mark.parametrize(
    ('error', 'expected'),
    [
        (
            exception.Deposed('h2'),
            [('WARNING', 'another process leads now: h2')],
        ),
        (exception.Outdated('it began'), [('INFO', 'it began')]),
        (exception.NotLeading('h2'), []),
    ],
)
def test_a_conflict_with_another_process_is_no_error(caplog, error, expected):
    assert said(caplog, error, None)[0] == expected


def test_an_unexpected_error_enters_the_quarantine(caplog):
    lines, made = said(caplog, KeyError('x'), None)
    text = 'fake: nothing is done: KeyError; it is tried again'
    assert lines == [('WARNING', text)]
    part = quarantine.InputKind.PART
    assert made._service.quarantine.entry(part, 'fake').cause == 'KeyError'


def test_a_failing_controller_does_not_stop_others():
    made = FakeController([None])
    assert made._run_part('first', [].pop) == ['first: IndexError']
    assert made._run_part('second', lambda: ['said']) == ['said']
    assert made._run_part('third', lambda: None) == []
    with pytest.raises(exception.CloudAway):
        made._run_part('fourth', _away)


def _away():
    raise exception.CloudAway('compute answers 503')


def test_nothing_is_done_while_clocks_disagree():
    with pytest.raises(exception.ClocksDisagree):
        FakeController([None], fault='h2 is 9 s ahead')._epoch()
    assert FakeController([None], epoch=None, fault='x')._epoch() is None
    assert FakeController([None])._epoch() == 7


def test_a_controller_without_the_lead_says_so():
    with pytest.raises(exception.NotLeading):
        FakeController([None], epoch=None)._require_epoch()
    with pytest.raises(exception.NotLeading, match='has not looked yet'):
        FakeController([None]).last()
