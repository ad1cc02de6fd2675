# SPDX-License-Identifier: Apache-2.0

"""What the matchmaker writes, reads and remembers, without a Redis."""

import dataclasses
import json
import logging

import hypothesis
from hypothesis import strategies
import pytest
import redis
from redis import sentinel
from redis._parsers import base

from oslo_messaging_zmq.matchmaker import contract
from oslo_messaging_zmq.matchmaker import knowledge
from oslo_messaging_zmq.matchmaker import redis as redis_module
from oslo_messaging_zmq.matchmaker import store
from oslo_messaging_zmq.redis import client
from oslo_messaging_zmq.redis import url
from tests.fixtures import fake_matchmaker

PLACE = url.RedisSettings((('db', 6379),), password='hunter2')


def peer(number=0, **changes):
    values = {
        'id': f'{number:032x}',
        'exchange': 'nova',
        'topic': 'compute',
        'server': f'server{number}',
        'host': 'node1',
        'rpc': 'tcp://10.0.0.1:1001',
        'fanout': 'tcp://[fe80::1%eth0]:1002',
        'generation': 7,
    }
    return contract.AnnouncedListener(**(values | changes))


@pytest.mark.parametrize(
    'one',
    [
        peer(),
        peer(key='x' * 40),
        peer(server='ü' * 255, topic=' ', exchange=''),
    ],
)
def test_a_record_is_read_as_it_was_written(one):
    assert store.decode(store.encode(one)) == one


@pytest.mark.parametrize(
    ('changes', 'expected'),
    [
        ({'version': 2}, 'not an object of version 1'),
        ({'generation': True}, 'its generation is no integer'),
        ({'generation': -1}, 'its generation is no integer'),
        ({'generation': 1e3}, 'its generation is no integer'),
        ({'generation': 10**16}, 'its generation is no integer'),
        ({'id': None}, 'its id is no text'),
        ({'id': 'g' * 32}, 'not 32 hexadecimal digits'),
        ({'id': '0' * 31}, 'not 32 hexadecimal digits'),
        ({'topic': 7}, 'its topic is no text'),
        ({'server': 'x' * 256}, 'its server is above 255'),
        ({'host': 'x' * 3000}, 'its host is no text of bounded length'),
        ({'server': 'n1\nERROR'}, 'its server holds characters'),
        ({'rpc': 'ipc:///tmp/x'}, 'its rpc is no tcp://host:port'),
        ({'rpc': 'tcp://h:1;x'}, 'its rpc is no tcp://host:port'),
        ({'fanout': 'tcp://h:123456'}, 'its fanout is no tcp://host:port'),
        ({'key': 'short'}, 'its key is neither empty nor 40'),
    ],
)
def test_a_record_that_is_none_is_refused_with_its_fault(changes, expected):
    record = json.loads(store.encode(peer())) | changes
    with pytest.raises(store.BadRecord, match=expected):
        store.decode(json.dumps(record).encode())


@pytest.mark.parametrize(
    'text',
    [b'', b'\xff\xfe', b'{', b'[]', b'7', b'null', b'[' * 4000, b'x' * 5000],
)
def test_a_text_that_is_no_record_is_refused(text):
    with pytest.raises(store.BadRecord):
        store.decode(text)


@hypothesis.given(strategies.binary(max_size=200))
def test_random_bytes_do_not_break_the_reader(text):
    with pytest.raises(store.BadRecord):
        store.decode(text)


@pytest.mark.parametrize(
    'text', ['', 'x', '7@', f'-7@{0:032x}', f'7@{0:031x}', f'7@{0:032x}\n']
)
def test_a_member_that_is_none_is_refused(text):
    with pytest.raises(store.BadRecord):
        store.parse_member(text)


def test_a_member_names_generation_and_id():
    member = store.member(peer(3))
    assert store.parse_member(member) == (7, f'{3:032x}')


def test_no_two_topics_share_a_key():
    keys = store.Keys('p')
    names = ['a', 'b', 'a:b', 'a%3Ab', ':', '', 'ü']
    every = {keys.index(one, two) for one in names for two in names}
    assert len(every) == len(names) ** 2


def members(*peers, epoch='e', mark=b'm'):
    names = tuple(store.member(one) for one in peers)
    return store.TopicMembers(epoch, mark, 0, names)


def found(*peers):
    return {store.member(one): one for one in peers}


def listing_of(*peers):
    listing = knowledge.Listing(0.0)
    listing.update(members(*peers), found(*peers), 0.0, 10.0)
    return listing


def test_a_listing_is_sorted_and_names_its_gaps():
    one, two = peer(1), peer(2)
    listing = listing_of(two, one)
    assert listing.peers == (one, two)
    three = members(one, peer(3))
    assert listing.unknown(three.names) == [store.member(peer(3))]


def test_an_update_says_whether_anything_changed():
    one, two = peer(1), peer(2)
    listing = listing_of(one)
    assert not listing.update(members(one), {}, 1.0, 10.0)
    assert listing.update(members(one, two), found(two), 2.0, 10.0)
    assert listing.update(members(two), {}, 3.0, 10.0)
    assert listing.peers == (two,)


def test_a_member_without_record_is_left_out():
    listing = listing_of(peer(1))
    assert not listing.update(members(peer(1), peer(2)), {}, 1.0, 10.0)
    assert listing.peers == (peer(1),)


def test_of_two_members_for_one_listener_its_record_says_which_is_true():
    one, two = peer(1), peer(2)
    forged = peer(1, rpc='tcp://10.0.0.66:1', generation=9)
    listing = listing_of(one, two)
    both = members(one, forged, two)
    assert listing.unknown(both.names) == list(both.names[:2])
    assert listing.update(both, found(forged), 1.0, 10.0)
    assert listing.peers == (forged, two)
    assert listing.unknown(both.names) == list(both.names[:2])
    assert listing.update(both, found(one), 2.0, 10.0)
    assert listing.peers == (one, two)


def test_after_a_loss_listeners_are_kept_until_they_are_back_or_too_late():
    one, two = peer(1), peer(2)
    listing = listing_of(one, two)
    lost = members(epoch='other')
    assert not listing.update(lost, {}, 100.0, 10.0)
    assert listing.keeps
    assert listing.peers == (one, two)
    back = members(one, epoch='other')
    assert not listing.update(back, found(one), 105.0, 10.0)
    assert listing.peers == (one, two)
    assert listing.update(back, {}, 110.0, 10.0)
    assert listing.peers == (one,)
    assert not listing.keeps


def test_after_a_loss_a_new_listener_replaces_kept_ones():
    listing = listing_of(peer(1))
    moved = peer(1, rpc='tcp://10.0.0.2:1', generation=8)
    listing.update(members(moved, epoch='other'), found(moved), 1.0, 10.0)
    assert listing.peers == (moved,)


def test_an_unchanged_record_that_is_registered_again_keeps_its_place():
    known = knowledge.SharedKnowledge()
    known.add(peer(1))
    (own,) = known.due(0.0)
    known.announced_now(own, peer(1, generation=9), 5.0)
    known.add(peer(1))
    assert known.due(1.0) == []
    known.add(peer(1, rpc='tcp://10.0.0.2:1'))
    assert [one.peer.generation for one in known.due(1.0)] == [0]
    assert [one.generation for one in known.take_leaving()] == [9]


def test_a_listener_that_left_while_it_was_announced_is_withdrawn():
    known = knowledge.SharedKnowledge()
    known.add(peer(1))
    (own,) = known.due(0.0)
    known.remove(peer(1).id)
    assert known.take_leaving() == []
    known.announced_now(own, peer(1), 5.0)
    assert known.take_leaving() == [peer(1)]


def test_unused_topics_are_forgotten():
    known = knowledge.SharedKnowledge()
    listing = known.use(('nova', 'compute'))
    assert known.listings_in_use(listing.used_s + 10, 20)
    assert not known.listings_in_use(listing.used_s + 30, 20)
    assert known.use(('nova', 'compute')) is not listing


def test_each_fault_is_counted_and_named_once(caplog):
    counters = {'wrong': 0}
    faults = redis_module.Faults(counters)
    faults.note('wrong', ['one', 'two'])
    faults.note('wrong', ['two', 'three'])
    faults.note('wrong', ['three'])
    faults.note('wrong', [])
    assert counters['wrong'] == 3
    assert len(caplog.records) == 2


def test_many_faults_make_one_short_line(caplog):
    faults = redis_module.Faults({'wrong': 0})
    faults.note('wrong', [f'fault {number}' for number in range(5000)])
    (record,) = caplog.records
    assert 'fault 2 (and 4997 more)' in record.getMessage()


def outage():
    return client.Outage(PLACE, logging.getLogger('test'), 'news', 2.0)


def test_an_outage_and_its_end_are_logged_once(caplog):
    one = outage()
    one.worked()
    for _ in range(5):
        one.failed(redis.ConnectionError('refused'))
    assert one.lasts
    one.worked()
    one.worked()
    assert not one.lasts
    assert one.count == 1
    assert [record.getMessage() for record in caplog.records] == [
        'No news until Redis serves again: Redis at db:6379: refused',
        'Redis at db:6379 serves again: news continue',
    ]


def test_a_changed_cause_of_an_outage_is_logged_again(caplog):
    one = outage()
    one.failed(redis.ConnectionError('refused'))
    one.failed(redis.AuthenticationError('WRONGPASS invalid'))
    assert one.count == 1
    assert [record.levelno for record in caplog.records] == [
        logging.WARNING,
        logging.ERROR,
    ]
    assert 'Redis at db:6379 refused the password' in caplog.text


def test_retries_become_rarer_up_to_a_limit():
    one = outage()
    delays = [one.failed(redis.TimeoutError()) for _ in range(12)]
    assert 0.05 <= delays[0] <= 0.1
    assert all(1.0 <= delay <= 2.0 for delay in delays[6:])
    one.worked()
    assert one.failed(redis.TimeoutError()) <= 0.1


@pytest.mark.parametrize(
    ('error', 'is_away', 'is_password'),
    [
        (redis.ConnectionError('refused'), True, False),
        (redis.TimeoutError('slow'), True, False),
        (OSError('no route'), True, False),
        (redis.exceptions.ReadOnlyError('READONLY'), True, False),
        (redis.ResponseError('x: -READONLY You cannot'), True, False),
        (redis.AuthenticationError('no'), True, True),
        (redis.ResponseError('NOAUTH needed'), False, True),
        (redis.ResponseError('WRONGTYPE'), False, False),
    ],
)
def test_errors_of_everything_differ_from_those_of_one_key(
    error, is_away, is_password
):
    assert client.is_away(error) == is_away
    assert client.is_password(error) == is_password
    assert client.is_general(error) == (is_away or is_password)


def parsed(answer):
    """What redis-py makes of an answer of Redis."""
    return base.BaseParser.parse_error(answer)


SCRIPT = ' script: ' + 40 * 'a' + ', on @user_script:25.'

OF_SERVER = [
    'ASK 3999 127.0.0.1:6381',
    'BUSY Redis is busy running a script. You can only call SCRIPT KILL',
    'CLUSTERDOWN The cluster is down',
    'CROSSSLOT Keys in request do not hash to the same slot',
    'DENIED Redis is running in protected mode',
    'ERR ACL failure in script: this user has no permissions',
    'ERR DB index is out of range',
    'ERR max number of clients reached',
    'ERR operation not permitted',
    'ERR unknown command `EVALSHA`',
    'ERR upstream failure',
    'LOADING Redis is loading the dataset in memory',
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is 'no'",
    'MISCONF Redis is configured to save RDB snapshots',
    'MOVED 3999 127.0.0.1:6381',
    'NEWCODE of a version to come',
    'NOPERM this user has no permissions',
    'NOREPLICAS Not enough good replicas to write.',
    "OOM command not allowed when used memory > 'maxmemory'.",
    'READONLY You cannot write against a read only replica.',
    'TRYAGAIN Multiple keys request during rehashing of slot',
    'UNKILLABLE Sorry the script already executed write commands',
    "The user executing the script can't run this command or subcommand",
]

OF_KEY = [
    'BUSYGROUP Consumer Group name already exists',
    'BUSYKEY Target key name already exists.',
    'ERR no such key',
    'ERR value is not an integer or out of range',
    'ERR The stream has exhausted the last possible ID, unable to add more',
    'ERR user_script:3: attempt to compare nil with number',
    'NOGROUP No such consumer group',
    'UNBLOCKED the stream key no longer exists',
    'WRONGTYPE Operation against a key holding the wrong kind of value',
]

OF_PASSWORD = [
    'NOAUTH Authentication required.',
    'WRONGPASS invalid username-password pair or user is disabled.',
]


def forms(answer):
    """How one answer reaches us: bare, and from scripts old and new."""
    head = 'ERR Error running script (call to f_a): @user_script:4: '
    yield answer
    if not answer.startswith(('ASK', 'MOVED')):  # never from a script
        yield answer + SCRIPT
    if answer.split()[0].isupper() and not answer.startswith('ERR'):
        yield f'{head}@user_script: 4: -{answer}'


@pytest.mark.parametrize('answer', OF_SERVER)
def test_an_answer_about_the_server_is_an_outage(answer):
    for form in forms(answer):
        error = parsed(form)
        assert client.is_away(error), form
        assert not client.concerns_one_key(error), form
        assert not client.is_wrong_type(error), form


@pytest.mark.parametrize('answer', OF_KEY)
def test_an_answer_about_one_key_is_no_outage(answer):
    for form in forms(answer):
        error = parsed(form)
        assert client.concerns_one_key(error), form
        assert not client.is_general(error), form
        assert client.is_wrong_type(error) == ('WRONGTYPE' in form)


@pytest.mark.parametrize('answer', OF_PASSWORD)
def test_an_answer_about_the_password_concerns_everything(answer):
    for form in forms(answer):
        error = parsed(form)
        assert client.is_password(error), form
        assert client.is_general(error), form
        assert not client.concerns_one_key(error), form


def test_after_an_outage_all_are_kept_until_they_could_announce_themselves():
    one, two = peer(1), peer(2)
    listing = listing_of(one, two)
    listing.keep_all(20.0)
    assert not listing.update(members(two), {}, 15.0, 10.0)
    assert listing.peers == (one, two)
    assert listing.update(members(two), {}, 25.0, 10.0)
    assert listing.peers == (two,)


@pytest.mark.parametrize(
    ('error', 'expected'),
    [
        (
            parsed('NOPERM this user has no permissions'),
            (
                'Redis at db:6379 does not permit it: NOPERM this user has no'
                ' permissions; see its ACL'
            ),
        ),
        (parsed('OOM full'), 'Redis at db:6379 refuses: OOM full'),
        (redis.TimeoutError(), 'Redis at db:6379: TimeoutError'),
        (redis.ConnectionError('pw=hunter2'), 'Redis at db:6379: pw=***'),
        (
            sentinel.MasterNotFoundError('<Redis(password=hunter2)>'),
            (
                'Redis at db:6379: No master found: no Sentinel that answers'
                ' knows one that is up'
            ),
        ),
    ],
)
def test_the_text_of_an_error_holds_no_password(error, expected):
    if not hasattr(error, 'status_code'):
        # Older libraries leave out the code that Redis begins with.
        expected = expected.replace('NOPERM ', '').replace('OOM ', '')
    assert client.explain(error, PLACE) == expected


def test_the_fake_matchmaker_keeps_the_contract():
    book = fake_matchmaker.FakeBook()
    mine = fake_matchmaker.FakeMatchmaker(book)
    yours = fake_matchmaker.FakeMatchmaker(book)
    told = []
    mine.watch(lambda *news: told.append(len(news[2])))
    assert mine.peers('nova', 'compute') == ()
    yours.register(peer(1))
    yours.register(peer(2))
    assert [one.id for one in mine.peers('nova', 'compute')] == [
        peer(1).id,
        peer(2).id,
    ]
    first, second = mine.peers('nova', 'compute')
    assert 0 < first.generation < second.generation
    book.flush()
    book.away = True
    yours.unregister(peer(1).id)
    assert len(mine.look_up('nova', 'compute', 1.0)) == 2
    book.away = False
    assert [one.id for one in mine.peers('nova', 'compute')] == [peer(2).id]
    moved = dataclasses.replace(peer(2), rpc='tcp://10.0.0.9:1')
    yours.register(moved)
    assert mine.peers('nova', 'compute')[0].rpc == moved.rpc
    yours.stop()
    assert mine.peers('nova', 'compute') == ()
    assert told == [1, 2, 2, 1, 1, 0]
