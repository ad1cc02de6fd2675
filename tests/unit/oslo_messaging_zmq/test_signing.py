# SPDX-License-Identifier: Apache-2.0

import json

import hypothesis
from hypothesis import strategies
import pytest

from oslo_messaging_zmq import errors
from oslo_messaging_zmq.keys import admin
from oslo_messaging_zmq.keys import allow_list
from oslo_messaging_zmq.keys import files
from oslo_messaging_zmq.keys import keyring
from oslo_messaging_zmq.keys import signing

PUBLIC, SECRET = signing.new_pair()


def test_a_signature_is_that_of_rfc_8032():
    # Its first test vector, in hexadecimal there.
    seed = bytes.fromhex(
        '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60'
    )
    expected = bytes.fromhex(
        'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155'
        '5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b'
    )
    signature = signing.sign(signing.z85.encode(seed), b'')
    assert signing.z85.decode(signature) == expected


@hypothesis.given(strategies.binary(), strategies.binary())
def test_a_signature_is_for_the_signed_text_only(message, other):
    signature = signing.sign(SECRET, message)
    assert len(signature) == signing.LENGTH
    assert signing.has_valid_signature(PUBLIC, message, signature)
    assert signing.has_valid_signature(PUBLIC, other, signature) is (
        other == message
    )


@hypothesis.given(strategies.text() | strategies.just('#' * signing.LENGTH))
def test_a_text_that_is_no_signature_signs_nothing(text):
    assert not signing.has_valid_signature(PUBLIC, b'', text)
    assert not signing.has_valid_signature(
        text, b'', signing.sign(SECRET, b'')
    )


def test_public_keys_can_be_arguments_of_a_command():
    pairs = [signing.new_pair() for _ in range(200)]
    assert not any(public.startswith('-') for public, _ in pairs)
    assert all(signing.public_of(secret) == own for own, secret in pairs)


@pytest.fixture
def place(tmp_path):
    return tmp_path / 'keys'


@pytest.fixture
def rings(place):
    """A keyring for each of a node and two controllers."""
    for name, role in (
        ('n1', 'node'),
        ('c1', 'controller'),
        ('c2', 'controller'),
    ):
        admin.make(place, name, role)
    return {
        name: keyring.Keyring(place / f'{name}.secret', reload_s=0.0)
        for name in ('n1', 'c1', 'c2')
    }


def test_controllers_sign_and_nodes_cannot(rings, place):
    signature = rings['c1'].sign(b'all')
    assert all(
        ring.has_valid_signature(b'all', 'c1', signature)
        for ring in rings.values()
    )
    assert not rings['n1'].has_valid_signature(b'all', 'c2', signature)
    assert not rings['n1'].has_valid_signature(b'else', 'c1', signature)
    with pytest.raises(errors.KeysError, match='key of n1 cannot sign'):
        rings['n1'].sign(b'all')
    assert 'signing' not in (place / 'n1.secret').read_text()
    assert (place / 'allowed.json').read_text().count('"signs"') == 2


def test_a_node_that_gets_a_signing_key_signs_nothing(rings, place):
    public, secret = signing.new_pair()
    path = place / 'allowed.json'
    document = json.loads(path.read_text())
    document['keys'][0]['signs'] = public
    path.write_text(json.dumps(document))
    assert rings['c1'].entry(rings['n1'].public).signs == public
    signature = signing.sign(secret, b'all')
    assert not rings['c1'].has_valid_signature(b'all', 'n1', signature)


def test_a_signature_of_a_revoked_key_does_not_count(rings, place):
    old = rings['c1'].sign(b'all')
    former = rings['c1'].public
    admin.rotate(place, 'c1')
    new = keyring.Keyring(place / 'c1.secret').sign(b'all')
    assert new != old
    for signature in (old, new):
        assert rings['n1'].has_valid_signature(b'all', 'c1', signature)
    admin.revoke(place, former)
    assert not rings['n1'].has_valid_signature(b'all', 'c1', old)
    assert rings['n1'].has_valid_signature(b'all', 'c1', new)


def test_a_controller_of_before_signs_after_its_rotation(rings, place):
    for name in ('c1.secret', 'allowed.json'):
        document = json.loads((place / name).read_text())
        document.pop('signing', None)
        for key in document.get('keys', ()):
            key.pop('signs', None)
        (place / name).write_text(json.dumps(document))
    old = keyring.Keyring(place / 'c1.secret')
    with pytest.raises(errors.KeysError, match='make or rotate a key'):
        old.sign(b'all')
    admin.rotate(place, 'c1')
    new = keyring.Keyring(place / 'c1.secret')
    assert rings['n1'].has_valid_signature(b'all', 'c1', new.sign(b'all'))


def test_signing_keys_are_in_no_text_of_ours(rings, place):
    pair = files.read_pair(place / 'c1.secret')
    secret = pair.signing_key.decode()
    assert secret in (place / 'c1.secret').read_text()
    texts = [repr(pair), repr(rings['c1'])]
    texts.append((place / 'allowed.json').read_text())
    assert not any(secret in text for text in texts)


def test_a_broken_signing_key_is_refused(rings, place):
    path = place / 'c1.secret'
    document = json.loads(path.read_text())
    for wrong in ('short', 7, None):
        path.write_text(json.dumps({**document, 'signing': wrong}))
        with pytest.raises(errors.KeysError, match='is no key pair'):
            files.read_pair(path)


def test_a_signing_key_from_elsewhere_is_allowed_and_compared(rings, place):
    pair = files.read_pair(place / 'c1.secret')
    (place / 'allowed.json').unlink()
    for name in ('n1', 'c2'):
        (place / f'{name}.secret').unlink()
    entry = admin.allow(place, 'c1', pair.public, 'controller', pair.signs)
    assert allow_list.parse(allow_list.render((entry,))) == (entry,)
    assert list(admin.faults(place)) == []
    admin.revoke(place, 'c1')
    (place / 'allowed.json').unlink()
    admin.allow(place, 'c1', pair.public, 'controller')
    [fault] = admin.faults(place)
    assert fault.endswith(
        f'it signs with {pair.signs}, and the allow-list has none'
    )
    with pytest.raises(errors.KeysError, match='is no public key'):
        admin.allow(place, 'c3', pair.public, 'controller', 'short')
