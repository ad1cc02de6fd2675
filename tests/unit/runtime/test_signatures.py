# SPDX-License-Identifier: Apache-2.0

import pytest

from nova_fairness import exception
from nova_fairness.runtime import signatures
from oslo_messaging_zmq.keys import admin
from oslo_messaging_zmq.keys import keyring


def of(place, name, domain='cell1'):
    ring = keyring.Keyring(place / f'{name}.secret')
    return signatures.Signatures(ring, domain)


@pytest.fixture
def place(tmp_path):
    made = tmp_path / 'keys'
    admin.make(made, 'n1', 'node')
    admin.make(made, 'ctl', 'controller')
    return made


@pytest.fixture
def choice(place):
    return of(place, 'ctl').signed(5, 'M1', 'P1')


def test_a_choice_is_signed_and_believed(place, choice):
    assert (choice['epoch'], choice['origin']) == (5, 'ctl')
    of(place, 'n1').check(choice)


@pytest.mark.parametrize(
    ('change', 'reason'),
    [
        ({'epoch': 6}, 'signature'),
        ({'metric': 'M2'}, 'signature'),
        ({'policy': 'P2'}, 'signature'),
        ({'origin': 'n1'}, 'signature'),
        ({'user_id': 'somebody'}, 'signature'),
        ({'request_id': 'req-9'}, 'signature'),
        ({'epoch': '5'}, 'signature'),
        ({'signature': '#' * 80}, 'signature'),
        ({'signature': ''}, 'unsigned'),
        ({'signature': None}, 'unsigned'),
    ],
)
def test_what_was_changed_is_refused(place, choice, change, reason):
    with pytest.raises(exception.ReportRefused) as raised:
        of(place, 'n1').check({**choice, **change})
    assert raised.value.reason == reason


def test_a_choice_is_for_one_domain(place, choice):
    with pytest.raises(exception.ReportRefused):
        of(place, 'n1', 'cell2').check(choice)


def test_who_is_no_controller_is_told_so(place):
    with pytest.raises(exception.NotAllowed, match='role controller'):
        of(place, 'n1').signed(5, 'M1', 'P1')
