# SPDX-License-Identifier: Apache-2.0

import json

from oslo_config import cfg
import pytest

from nova_fairness import exception
from nova_fairness.conf import transport as transport_conf
from nova_fairness.runtime import signatures
from oslo_messaging_zmq import options
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


def test_a_signed_choice_is_accepted(place, choice):
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
def test_a_changed_choice_is_refused(place, choice, change, reason):
    with pytest.raises(exception.ReportRefused) as raised:
        of(place, 'n1').check({**choice, **change})
    assert raised.value.reason == reason


def test_a_choice_is_for_one_domain(place, choice):
    with pytest.raises(exception.ReportRefused):
        of(place, 'n1', 'cell2').check(choice)


def test_a_node_without_the_controller_role_cannot_sign(place):
    with pytest.raises(exception.NotAllowed, match='role controller'):
        of(place, 'n1').signed(5, 'M1', 'P1')


def _unsigned(place):
    """A key of a controller that was made before keys could sign."""
    path = place / 'ctl.secret'
    kept = json.loads(path.read_text())
    path.write_text(
        json.dumps({n: v for n, v in kept.items() if 'sign' not in n})
    )
    return 'ctl'


def _another(place):
    """A secret that was copied, and an allow-list that was not."""
    before = (place / 'allowed.json').read_text()
    admin.rotate(place, 'ctl')
    (place / 'allowed.json').write_text(before)
    return 'ctl'


def _revoked(place):
    admin.revoke(place, 'ctl')
    return 'ctl'


@pytest.mark.parametrize(
    ('make', 'expected'),
    [
        (lambda place: 'ctl', ''),
        (lambda place: 'n1', 'has the role node; expected controller'),
        (_unsigned, 'no key to sign with'),
        (_another, 'is not allowed'),
        (_revoked, 'is not allowed'),
    ],
)
def test_a_service_starts_only_with_a_key_that_others_believe(
    place, make, expected
):
    name = make(place)
    conf = cfg.ConfigOpts()
    transport_conf.register_opts(conf)
    options.register_opts(conf)
    conf([])
    conf.set_override('transport_url', 'zmq+redis://127.0.0.1:9/0')
    path = str(place / f'{name}.secret')
    conf.set_override('keys_path', path, options.GROUP.name)
    if expected:
        with pytest.raises(exception.ConfigurationError, match=expected):
            signatures.signer(conf, 'cell1')
    else:
        signs = signatures.signer(conf, 'cell1')
        told = signs.signed_tree('1')
        of(place, 'n1').check_tree(told, '1')
