# SPDX-License-Identifier: Apache-2.0

import logging

import pytest

from nova_fairness.exchange import attendance
from nova_fairness.model import report


def view(*usable, **left_out):
    return report.View(dict.fromkeys(usable), {}, left_out)


@pytest.fixture
def noted(caplog):
    caplog.set_level(logging.INFO)
    book = attendance.Attendance(logging.getLogger('test'))

    def note(seen):
        caplog.clear()
        book.note(seen)
        return caplog.messages

    return note


def test_only_what_changed_is_said(noted):
    assert noted(view('n1')) == ['In view: n1']
    assert noted(view('n1')) == []
    assert noted(view('n1', n2='silent for 31 s')) == [
        'Left out: n2 (silent for 31 s)'
    ]
    assert noted(view('n1', n2='silent for 41 s')) == []
    assert noted(view('n1', n2='measures with X, not with Y')) == [
        'Left out: n2 (measures with X, not with Y)'
    ]
    assert noted(view('n1', 'n2')) == ['In view: n2']


def test_a_cloud_that_falls_apart_is_one_line(noted):
    hosts = {f'n{number:02d}': 'silent for 31 s' for number in range(50)}
    (line,) = noted(view(**hosts))
    assert line.endswith('n09 (silent for 31 s) and 40 more')
