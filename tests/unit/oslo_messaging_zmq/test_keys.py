# SPDX-License-Identifier: Apache-2.0

import logging
import multiprocessing
import stat

import pytest
import zmq

from oslo_messaging_zmq import errors
from oslo_messaging_zmq.keys import admin
from oslo_messaging_zmq.keys import files as key_files
from oslo_messaging_zmq.keys import keyring


@pytest.fixture
def place(tmp_path):
    return tmp_path / 'keys'


def snapshot(place):
    return {path.name: path.read_bytes() for path in place.iterdir()}


def test_a_made_key_is_whole_private_and_allowed(place):
    entry = admin.make(place, 'n1', 'controller')
    path = place / 'n1.secret'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    pair = key_files.read_pair(path)
    assert (
        zmq.curve_public(pair.secret).decode() == pair.public == entry.public
    )
    assert admin.entries(place) == (entry,)
    assert (entry.name, entry.role, entry.revoked) == (
        'n1',
        'controller',
        False,
    )
    assert sorted(snapshot(place)) == ['allowed.json', 'n1.secret']


def test_secrets_are_in_no_text_of_ours(place, caplog):
    caplog.set_level(logging.DEBUG)
    admin.make(place, 'n1', 'node')
    ring = keyring.Keyring(place)
    secret = ring.secret.decode()
    pair = key_files.read_pair(place / 'n1.secret')
    new = admin.NewFile(place, key_files.pair_text(pair), 0o600)
    path = place / 'n1.secret'
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(errors.KeysError) as raised:
        key_files.read_pair(path)
    texts = [repr(ring), repr(pair), repr(new), caplog.text]
    texts += [str(raised.value), str(list(admin.faults(place)))]
    texts.append((place / 'allowed.json').read_text())
    assert not any(secret in text for text in texts)


@pytest.mark.parametrize('mode', [0o640, 0o604, 0o660, 0o601])
def test_a_secret_that_others_can_read_is_not_used(place, mode):
    admin.make(place, 'n1', 'node')
    (place / 'n1.secret').chmod(mode)
    with pytest.raises(errors.KeysError, match='can be read by others'):
        keyring.Keyring(place)
    assert any('read by others' in f for f in admin.faults(place))


@pytest.mark.parametrize('what', ['allowed.json', ''])
def test_a_list_that_others_can_change_is_not_used(place, what):
    admin.make(place, 'n1', 'node')
    (place / what).chmod(0o775)
    with pytest.raises(errors.KeysError, match='can be changed by others'):
        keyring.Keyring(place)


@pytest.mark.parametrize(
    'text',
    ['', '{}', '[]', '\xff', '{"version": 1, "name": "n1", "public": 3}'],
)
def test_a_broken_secret_is_refused(place, text):
    admin.make(place, 'n1', 'node')
    (place / 'n1.secret').write_text(text)
    with pytest.raises(errors.KeysError, match='is no key pair'):
        keyring.Keyring(place)


def test_a_pair_of_two_different_keys_is_refused(place):
    admin.make(place, 'n1', 'node')
    path = place / 'n1.secret'
    other, _ = keyring.new_pair()
    pair = key_files.read_pair(path)
    path.write_text(path.read_text().replace(pair.public, other))
    with pytest.raises(errors.KeysError, match='is no key pair'):
        key_files.read_pair(path)


def test_a_directory_must_hold_one_secret_or_be_told_which(place):
    with pytest.raises(errors.KeysError, match='cannot be read'):
        keyring.Keyring(place)
    place.mkdir()
    with pytest.raises(errors.KeysError, match='holds no secret'):
        keyring.Keyring(place)
    admin.make(place, 'n1', 'node')
    admin.make(place, 'n2', 'node')
    with pytest.raises(errors.KeysError, match='holds 2 secrets'):
        keyring.Keyring(place)
    assert keyring.Keyring(place / 'n2.secret').name == 'n2'


def test_a_keyring_without_a_list_does_not_start(place):
    admin.make(place, 'n1', 'node')
    (place / 'allowed.json').unlink()
    with pytest.raises(errors.KeysError, match=r'allowed\.json cannot'):
        keyring.Keyring(place)


def test_a_change_of_the_list_is_seen(place):
    admin.make(place, 'n1', 'node')
    ring = keyring.Keyring(place, reload_s=0)
    assert ring.allowed(ring.public).name == 'n1'
    other, _ = keyring.new_pair()
    assert ring.entry(other) is None
    admin.allow(place, 'n2', other, 'controller')
    assert ring.allowed(other).role == 'controller'
    admin.revoke(place, 'n2')
    assert ring.allowed(other) is None
    assert ring.entry(other).revoked
    with pytest.raises(errors.KeyRefused, match='of n2 was revoked at'):
        ring.require(other)


def test_a_key_answers_for_a_server_as_the_list_says(place):
    admin.make(place, 'n1', 'node')
    ring = keyring.Keyring(place, reload_s=0)
    ring.require_server(ring.public, 'n1')
    with pytest.raises(
        errors.ForeignName, match='key of n1 may not answer for n2'
    ):
        ring.require_server(ring.public, 'n2')
    assert not ring.serves(ring.public, 'n2')
    assert not ring.serves('unknown', 'n1')
    admin.serves(place, 'n1', ['n2', 'n2'])
    ring.require_server(ring.public, 'n2')
    assert ring.serves(ring.public, 'n2')
    assert admin.entries(place)[0].serves == ('n2',)
    assert admin.rotate(place, 'n1').serves == ('n2',)
    other, _ = keyring.new_pair()
    assert admin.allow(place, 'n1', other, None).serves == ('n2',)
    admin.revoke(place, 'n1')
    with pytest.raises(errors.KeyRefused, match='was revoked'):
        ring.require_server(ring.public, 'n1')
    assert not ring.serves(ring.public, 'n1')


def test_the_allow_list_is_checked_at_intervals(place):
    admin.make(place, 'n1', 'node')
    ring = keyring.Keyring(place, reload_s=3600)
    assert ring.entry(ring.public).name == 'n1'
    (place / 'allowed.json').unlink()
    assert ring.entry(ring.public).name == 'n1'
    assert not ring.problem


@pytest.mark.parametrize('damage', ['broken', 'gone', 'open'])
def test_the_last_valid_allow_list_stays_in_use(place, damage, caplog):
    admin.make(place, 'n1', 'node')
    ring = keyring.Keyring(place, reload_s=0)
    path = place / 'allowed.json'
    good = path.read_text()
    if damage == 'broken':
        path.write_text(good[:-9])
    elif damage == 'gone':
        path.unlink()
    else:
        path.write_text(good + '\n')
        path.chmod(0o666)
    for _ in range(3):
        assert ring.allowed(ring.public).name == 'n1'
    assert str(path) in ring.problem
    said = [m for m in caplog.messages if 'the last good allow-list' in m]
    assert len(said) == 1
    path.write_text(good)
    path.chmod(0o644)
    assert ring.allowed(ring.public).name == 'n1'


def test_a_repaired_allow_list_ends_the_problem(place):
    admin.make(place, 'n1', 'node')
    ring = keyring.Keyring(place, reload_s=0)
    (place / 'allowed.json').write_text('?')
    assert ring.allowed(ring.public)
    assert ring.problem
    (place / 'allowed.json').write_text('{"version": 1, "keys": []}')
    assert ring.allowed(ring.public) is None
    assert not ring.problem


@pytest.mark.parametrize(
    ('change', 'said'),
    [
        (lambda place: admin.revoke(place, 'n1'), 'was revoked at'),
        (
            lambda place: (place / 'allowed.json').write_text(
                '{"version": 1, "keys": []}'
            ),
            'is not on the allow-list',
        ),
    ],
)
def test_a_node_says_when_others_will_refuse_it(place, change, said, caplog):
    admin.make(place, 'n1', 'node')
    change(place)
    keyring.Keyring(place)
    assert said in caplog.text


def test_rotation_adds_a_key_and_leaves_the_old_one_good(place):
    old = admin.make(place, 'n1', 'controller')
    new = admin.rotate(place, 'n1')
    assert new.public != old.public
    assert new.role == 'controller'
    assert admin.entries(place) == (old, new)
    assert key_files.read_pair(place / 'n1.secret').public == new.public
    assert admin.overlaps(admin.entries(place)) == {'n1': 2}
    admin.revoke(place, old.public)
    assert admin.overlaps(admin.entries(place)) == {}
    assert list(admin.faults(place)) == []


def test_a_name_is_made_once_and_again_after_it_was_revoked(place):
    admin.make(place, 'n1', 'node')
    with pytest.raises(errors.KeysError, match='n1 has a key already'):
        admin.make(place, 'n1', 'node')
    admin.revoke(place, 'n1')
    assert admin.make(place, 'n1', 'controller').role == 'controller'


def test_a_secret_that_is_on_no_list_is_not_overwritten(place):
    admin.make(place, 'n1', 'node')
    (place / 'allowed.json').unlink()
    before = snapshot(place)
    with pytest.raises(errors.KeysError, match='not on the allow-list'):
        admin.make(place, 'n1', 'node')
    assert snapshot(place) == before


def test_the_role_of_an_allowed_key_is_that_of_its_name(place):
    admin.make(place, 'ctl', 'controller')
    public, _ = keyring.new_pair()
    assert admin.allow(place, 'ctl', public, None).role == 'controller'
    public, _ = keyring.new_pair()
    assert admin.allow(place, 'n1', public, None).role == 'node'


@pytest.mark.parametrize(
    'change',
    [
        lambda place: admin.make(place, '../n1', 'node'),
        lambda place: admin.make(place, 'n2', 'root'),
        lambda place: admin.make(place, 'n1', 'node'),
        lambda place: admin.rotate(place, 'nobody'),
        lambda place: admin.revoke(place, 'nobody'),
        lambda place: admin.allow(place, 'n2', 'no key', 'node'),
        lambda place: admin.allow(place, 'n 2', 'x' * 40, 'node'),
    ],
)
def test_invalid_input_changes_no_key(place, change):
    admin.make(place, 'n1', 'node')
    before = snapshot(place)
    with pytest.raises(errors.KeysError):
        change(place)
    assert snapshot(place) == before


def test_a_broken_list_is_never_overwritten(place):
    admin.make(place, 'n1', 'node')
    (place / 'allowed.json').write_text('{')
    before = snapshot(place)
    for change in (
        lambda: admin.make(place, 'n2', 'node'),
        lambda: admin.rotate(place, 'n1'),
        lambda: admin.revoke(place, 'n1'),
    ):
        with pytest.raises(errors.KeysError, match='not JSON'):
            change()
    assert snapshot(place) == before


def test_when_a_second_file_cannot_be_written_the_first_is_put_back(place):
    place.mkdir()
    (place / 'a').write_text('old')
    (place / 'c').mkdir()
    files = [
        admin.NewFile(place / name, 'new', 0o600) for name in ('a', 'b', 'c')
    ]
    with pytest.raises(errors.KeysError, match='nothing was changed'):
        admin.write(files)
    assert (place / 'a').read_text() == 'old'
    assert sorted(p.name for p in place.iterdir()) == ['a', 'c']


def test_a_second_run_waits_and_says_so_when_it_waited_in_vain(place):
    place.mkdir()
    with (
        admin.locked(place),
        pytest.raises(errors.KeysError, match='by another run; waited 0'),
        admin.locked(place, timeout_s=0),
    ):
        pass
    with admin.locked(place, timeout_s=0):
        pass


def _make_many(place, first):
    for number in range(first, first + 5):
        admin.make(place, f'n{number}', 'node')


def test_runs_at_the_same_time_lose_nothing(place):
    context = multiprocessing.get_context('spawn')
    runs = [
        context.Process(target=_make_many, args=(place, first))
        for first in (0, 5, 10)
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    names = {entry.name for entry in admin.entries(place)}
    assert names == {f'n{number}' for number in range(15)}
    assert list(admin.faults(place)) == []


def test_the_key_check_names_each_mistake(place):
    assert any('cannot be read' in f for f in admin.faults(place))
    admin.make(place, 'n1', 'node')
    admin.make(place, 'n2', 'node')
    assert list(admin.faults(place)) == []
    (place / 'n1.secret').rename(place / 'n9.secret')
    admin.revoke(place, 'n2')
    faults = list(admin.faults(place))
    assert len(faults) == 2
    assert 'n2.secret: its key was revoked at' in faults[0]
    assert 'n9.secret holds the key of n1' in faults[1]
