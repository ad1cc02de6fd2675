# SPDX-License-Identifier: Apache-2.0

import dataclasses
import functools
import json
import stat

import hypothesis
from hypothesis import strategies
import pytest

from nova_fairness import exception
from nova_fairness.exchange import desired as desired_module
from nova_fairness.exchange import desired_state
from nova_fairness.exchange import desired_store
from nova_fairness.runtime import signatures as signatures_module
from oslo_messaging_zmq.keys import admin
from oslo_messaging_zmq.keys import keyring
from tests.fixtures.patience import wait_for_value
from tests.unit.exchange import fake_store

FIRST = desired_module.DesiredChoice(1, 'm1', 'p1', 'n1')
SECOND = desired_module.DesiredChoice(2, 'm2', 'p2', 'n2')
CONFIGURED = ('m0', 'p0')

some = strategies.builds(
    desired_module.DesiredChoice,
    epoch=strategies.integers(1, 3),
    metric=strategies.sampled_from('mn'),
    policy=strategies.just('p'),
    origin=strategies.sampled_from('abc'),
)


@hypothesis.given(strategies.lists(some | strategies.none()))
def test_the_newest_choice_does_not_depend_on_arrival_sequence(known):
    winner = desired_module.newest(*known)
    assert winner == desired_module.newest(*reversed(known))
    assert all(
        item is None or not item.is_newer_than(winner) for item in known
    )


def test_epochs_made_at_once_are_ordered_by_origin():
    other = dataclasses.replace(FIRST, origin='n2')
    assert other.is_newer_than(FIRST)
    assert not FIRST.is_newer_than(other)
    assert not FIRST.is_newer_than(FIRST)


def test_choices_of_one_origin_at_once_are_ordered_too():
    other = dataclasses.replace(FIRST, metric='m2')
    assert other.is_newer_than(FIRST)
    assert not FIRST.is_newer_than(other)


def test_the_epoch_has_a_maximum():
    last = dataclasses.replace(FIRST, epoch=desired_module.LARGEST_EPOCH)
    with pytest.raises(exception.ReportRefused, match='no epoch after'):
        desired_module.next_choice(last, 'm', 'p', 'n')


# The file.


@pytest.fixture
def file(tmp_path):
    return desired_store.FileStore(tmp_path / 'desired.json')


def test_a_saved_choice_is_loaded(file, tmp_path):
    assert file.load() is None
    file.save(FIRST)
    file.save(SECOND)
    assert file.load() == SECOND
    assert [path.name for path in tmp_path.iterdir()] == ['desired.json']
    mode = (tmp_path / 'desired.json').stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


GARBAGE = {
    'nothing': b'',
    'no JSON': b'{"version": 1',
    'no text': b'\xff\xfe',
    'another version': b'{"version": 2}',
    'no object': b'[1]',
    'deep': b'[' * 100_000,
    'no epoch': b'{"version": 1, "metric": "m"}',
    'a number that is none': b'{"version": 1, "epoch": NaN}',
}


@pytest.mark.parametrize('content', GARBAGE.values(), ids=GARBAGE)
def test_a_file_of_garbage_is_named(file, tmp_path, content):
    (tmp_path / 'desired.json').write_bytes(content)
    with pytest.raises(
        exception.StateError, match=r'desired\.json: the file is unusable'
    ):
        file.load()
    file.save(FIRST)
    assert file.load() == FIRST


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    file = desired_store.FileStore(tmp_path / 'missing' / 'desired.json')
    assert not file.save(FIRST)
    assert 'desired.json' in file.problem


# The state.


@pytest.fixture
def state(file, monkeypatch):
    """Makes states of node n5 whose threads look all the time."""
    monkeypatch.setattr(desired_state, '_MIN_POLL_S', 0.0)
    made = []

    def make(shared=None, *, poll_s=0.01, start=True, signatures=None):
        item = desired_state.DesiredState(
            'n5', file, shared, poll_s, signatures
        )
        if start:
            item.start()
        made.append(item)
        return item

    yield make
    for item in made:
        item.stop()


def test_the_desired_state_is_empty_at_first(state):
    fresh = state()
    assert fresh.current() is None
    assert fresh.status() == {
        'epoch': 0,
        'metric': '',
        'policy': '',
        'origin': '',
        'signature': '',
        'user_id': '',
        'request_id': '',
        'shared': False,
        'problem': '',
    }


def test_a_set_choice_survives_the_agent(state, file):
    assert state().set('m1', None, CONFIGURED) == desired_module.DesiredChoice(
        1, 'm1', 'p0', 'n5'
    )
    again = state()
    assert again.current().metric == 'm1'
    assert again.set(None, 'p2', CONFIGURED) == desired_module.DesiredChoice(
        2, 'm1', 'p2', 'n5'
    )
    assert file.load().epoch == 2


def test_a_lost_file_is_said_and_the_agent_starts(state, tmp_path, caplog):
    (tmp_path / 'desired.json').write_text('garbage')
    assert state().current() is None
    assert 'desired.json: the file is unusable' in caplog.text


def test_a_file_that_cannot_be_written_is_said(state, tmp_path, caplog):
    fresh = state(start=False)
    tmp_path.joinpath('desired.json').mkdir()
    fresh.set('m1', 'p1', CONFIGURED)
    assert fresh.current().metric == 'm1'
    assert 'cannot write' in caplog.text


def test_an_epoch_is_made_after_that_of_the_store(state):
    shared = fake_store.FakeStore(SECOND)
    fresh = state(shared, start=False)
    assert fresh.set('m3', None, CONFIGURED) == desired_module.DesiredChoice(
        3, 'm3', 'p2', 'n5'
    )
    assert shared.kept.epoch == 3


def test_a_node_takes_over_the_choice_of_the_store(state, file):
    fresh = state(fake_store.FakeStore(SECOND))
    wait_for_value(lambda: fresh.current() == SECOND)
    wait_for_value(lambda: file.load() == SECOND)


def test_a_store_that_lost_its_data_gets_the_choice_again(state, file):
    file.save(SECOND)
    shared = fake_store.FakeStore()
    state(shared)
    wait_for_value(lambda: shared.kept == SECOND)


def test_a_choice_is_written_after_an_outage_of_the_store(state, caplog):
    shared = fake_store.FakeStore(FIRST)
    shared.is_away = True
    fresh = state(shared)
    assert fresh.set('m9', 'p9', CONFIGURED).epoch == 1
    wait_for_value(lambda: fresh.status()['problem'])
    shared.is_away = False
    wait_for_value(lambda: shared.kept.metric == 'm9')
    wait_for_value(lambda: not fresh.status()['problem'])
    assert caplog.text.count('the store is away') == 1


def test_untrusted_gossip_makes_the_node_ask_the_store(state):
    shared = fake_store.FakeStore(FIRST)
    fresh = state(shared, poll_s=3600.0)
    wait_for_value(lambda: fresh.current() == FIRST)
    looks = shared.loads
    fresh.offer(SECOND, trusted=False)
    wait_for_value(lambda: shared.loads > looks)
    assert fresh.current() == FIRST
    shared.kept = SECOND
    fresh.offer(SECOND, trusted=False)
    wait_for_value(lambda: fresh.current() == SECOND)


def test_old_gossip_causes_no_read_of_the_store(state):
    shared = fake_store.FakeStore(SECOND)
    fresh = state(shared, start=False)
    fresh.take_over(SECOND)
    fresh.offer(FIRST, trusted=True)
    fresh.offer(None, trusted=True)
    assert fresh.current() == SECOND
    assert shared.loads == 0


def test_trusted_gossip_is_saved(state, file):
    fresh = state()
    fresh.offer(SECOND, trusted=True)
    assert fresh.current() == SECOND
    wait_for_value(lambda: file.load() == SECOND)


def test_a_choice_that_is_taken_over_does_not_go_back(state):
    fresh = state(start=False)
    assert fresh.take_over(SECOND) == SECOND
    assert fresh.take_over(FIRST) == SECOND
    assert fresh.status()['epoch'] == 2


def test_a_kept_choice_is_plain_json(file, tmp_path):
    file.save(FIRST)
    assert json.loads((tmp_path / 'desired.json').read_text()) == {
        'version': 1,
        'epoch': 1,
        'metric': 'm1',
        'policy': 'p1',
        'origin': 'n1',
        'signature': '',
        'user_id': '',
        'request_id': '',
    }


# Where peers have keys.


@pytest.fixture
def signatures(tmp_path):
    place = tmp_path / 'keys'
    admin.make(place, 'ctl', 'controller')
    return signatures_module.Signatures(keyring.Keyring(place), 'cell1')


@pytest.fixture
def signed(signatures):
    def make(epoch, metric='m1'):
        return desired_module.DesiredChoice(
            **signatures.signed(epoch, metric, 'p1')
        )

    return make


@pytest.fixture
def secured(state, signatures):
    return functools.partial(state, signatures=signatures)


def refused(node, reason):
    return node.statistics()[f'desired_refused_{reason}']


def test_a_choice_that_a_controller_signed_is_taken_from_the_store(
    secured, signed
):
    fresh = secured(fake_store.FakeStore(signed(3)))
    wait_for_value(lambda: fresh.current() == signed(3))
    assert fresh.status()['signature'] == signed(3).signature
    assert set(fresh.statistics().values()) == {0}


def test_an_unsigned_choice_is_refused_told_and_written_over(
    secured, signed, caplog
):
    shared = fake_store.FakeStore()
    fresh = secured(shared)
    fresh.take_over(signed(3))
    wait_for_value(lambda: shared.kept == signed(3))
    for wrong, reason in (
        (dataclasses.replace(signed(9), signature=''), 'unsigned'),
        (dataclasses.replace(signed(3), epoch=9), 'signature'),
    ):
        shared.kept = wrong
        wait_for_value(lambda reason=reason: refused(fresh, reason))
        wait_for_value(lambda: shared.kept == signed(3))
        wait_for_value(lambda: not fresh.status()['problem'])
    assert fresh.current() == signed(3)
    assert caplog.text.count('no controller signed it') == 1


def test_a_node_that_knows_nothing_takes_nothing_and_says_why(secured, signed):
    wrong = dataclasses.replace(signed(9), signature='')
    shared = fake_store.FakeStore(wrong)
    fresh = secured(shared)
    wait_for_value(lambda: 'no controller signed' in fresh.status()['problem'])
    assert fresh.current() is None
    assert shared.kept == wrong


def test_an_older_choice_of_the_store_is_not_taken_again(secured, signed):
    shared = fake_store.FakeStore(signed(3))
    fresh = secured(shared)
    wait_for_value(lambda: fresh.current() == signed(3))
    shared.kept = signed(4)
    wait_for_value(lambda: fresh.current() == signed(4))
    shared.kept = signed(3)
    wait_for_value(lambda: refused(fresh, 'older'))
    wait_for_value(lambda: shared.kept == signed(4))
    assert fresh.current() == signed(4)


def test_a_peer_is_believed_only_signed_choices(secured, signed, caplog):
    shared = fake_store.FakeStore()
    fresh = secured(shared, start=False)
    wrong = dataclasses.replace(signed(2), epoch=7)
    for _ in range(3):
        fresh.offer(wrong, trusted=False)
    assert fresh.current() is None
    assert refused(fresh, 'signature') == 3
    assert caplog.text.count('Desired state of a peer refused') == 1
    fresh.offer(signed(2), trusted=False)
    assert fresh.current() == signed(2)


def test_a_caller_must_have_signed_a_choice(secured, signed):
    fresh = secured(start=False)
    with pytest.raises(exception.NotAllowed, match='a controller signs'):
        fresh.set('m1', 'p1', CONFIGURED)
    with pytest.raises(exception.NotAllowed, match='no controller signed'):
        fresh.take_over(FIRST)
    assert fresh.current() is None
    assert fresh.take_over(signed(2)) == signed(2)
    assert fresh.take_over(signed(1)) == signed(2)


def test_a_choice_from_before_keys_signed_counts_until_a_signed_one(
    secured, signed, file
):
    former = dataclasses.replace(SECOND, epoch=70)
    file.save(former)
    shared = fake_store.FakeStore(former)
    fresh = secured(shared)
    wait_for_value(lambda: shared.loads > 3)
    assert (fresh.current(), fresh.status()['problem']) == (former, '')
    assert fresh.take_over(signed(1)) == signed(1)
    wait_for_value(lambda: shared.kept == signed(1))


def test_a_revoked_controller_is_overruled_at_any_epoch(
    secured, signed, tmp_path
):
    fresh = secured(start=False)
    stolen = signed(desired_module.LARGEST_EPOCH)
    fresh.take_over(stolen)
    place = tmp_path / 'keys'
    admin.make(place, 'new', 'controller')
    admin.revoke(place, 'ctl')
    fresh._signatures._keys._due = 0.0
    ring = keyring.Keyring(place / 'new.secret')
    chosen = signatures_module.Signatures(ring, 'cell1').signed(5, 'm2', 'p')
    assert fresh.current() == stolen
    good = desired_module.DesiredChoice(**chosen)
    assert fresh.take_over(good) == good
