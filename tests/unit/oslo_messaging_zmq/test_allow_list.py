# SPDX-License-Identifier: Apache-2.0

import json

import pytest

from oslo_messaging_zmq import errors
from oslo_messaging_zmq.keys import allow_list
from oslo_messaging_zmq.keys import keyring

KEYS = [keyring.new_pair()[0] for _ in range(4)]
THEN = '2026-01-31T12:00:00+00:00'
NOW = '2026-02-01T12:00:00+00:00'


def entry(number, name='n1', role='node', revoked_at=''):
    return allow_list.AllowedKey(KEYS[number], name, role, THEN, revoked_at)


ENTRIES = (entry(0), entry(1), entry(2, 'ctl', 'controller', NOW))


def test_an_allow_list_is_read_back_unchanged():
    assert allow_list.parse(allow_list.render(ENTRIES)) == ENTRIES
    assert allow_list.parse(allow_list.render(())) == ()


def test_each_key_has_a_line_of_its_own():
    lines = allow_list.render(ENTRIES).splitlines()
    for each in ENTRIES:
        assert sum(each.public in line for line in lines) == 1


def test_a_key_answers_for_its_name_and_those_it_was_given():
    more, changed = allow_list.with_server_names(
        ENTRIES, 'n1', ('n1@lvm', 'n7')
    )
    assert changed == more[:2]
    assert allow_list.parse(allow_list.render(more)) == more
    assert [
        more[1].answers_for(name) for name in ('n1', 'n1@lvm', 'n7', 'n', '')
    ] == [True, True, True, False, False]
    assert not more[2].answers_for('n7')
    assert allow_list.with_server_names(more, 'n1', ())[0] == ENTRIES


def test_lists_without_further_names_are_those_that_were_always_written():
    assert 'serves' not in allow_list.render(ENTRIES)
    more, _ = allow_list.with_server_names(ENTRIES, 'n1', ('n7',))
    assert allow_list.render(more).count('serves') == 2


@pytest.mark.parametrize('name', ['ctl', 'n9'])
def test_a_node_without_a_good_key_answers_for_no_name(name):
    with pytest.raises(errors.KeysError, match='has no good key'):
        allow_list.with_server_names(ENTRIES, name, ('n7',))


def document(**changes):
    item = {
        'name': 'n1',
        'role': 'node',
        'public': KEYS[0],
        'created': THEN,
        'revoked': None,
    }
    return json.dumps({'version': 1, 'keys': [{**item, **changes}]})


@pytest.mark.parametrize(
    ('text', 'fault'),
    [
        ('', 'not JSON'),
        ('[' * 100000, 'not JSON'),
        ('[]', 'expected an object'),
        ('{"version": 1}', 'list "keys"'),
        ('{"version": 2, "keys": []}', 'version 2: expected 1'),
        ('{"keys": []}', 'version None: expected 1'),
        ('{"version": 1, "keys": [7]}', 'key 1: expected an object'),
        (document(name='../x'), "key 1: '../x' is no name"),
        (document(name=''), 'is no name'),
        (document(name='n1\n'), 'is no name'),
        (document(role='root'), "'root' is no role"),
        (document(public='x' * 39), 'is no public key'),
        (document(public='"' * 40), 'is no public key'),
        (document(public='#' * 40), 'is no public key'),
        (document(public=None), 'is no public key'),
        (document(created='soon'), "'soon' is no time"),
        (document(created='2026-01-31T12:00:00'), 'is no time'),
        (document(revoked=True), 'True is no time'),
        (document(extra=1), 'and nothing else'),
        (document(serves='n2'), "'n2' is no list of servers"),
        (document(serves=[1]), '1 is no name of a server'),
        (document(serves=['a b']), "'a b' is no name of a server"),
        (document(serves=['']), "'' is no name of a server"),
        (document(serves=['x' * 256]), 'is no name of a server'),
        (allow_list.render((entry(0), entry(0, 'n2'))), 'is there twice'),
    ],
)
def test_an_invalid_allow_list_is_refused_with_the_reason(text, fault):
    with pytest.raises(errors.KeysError) as raised:
        allow_list.parse(text)
    assert fault in str(raised.value)


def test_a_too_long_allow_list_is_refused():
    text = json.dumps(
        {'version': 1, 'keys': [None] * (allow_list.MOST_KEYS + 1)}
    )
    with pytest.raises(errors.KeysError, match='at most 50000'):
        allow_list.parse(text)


def test_a_name_may_have_several_good_keys():
    both = allow_list.with_added_key((entry(0),), entry(3))
    assert allow_list.valid_keys(both, 'n1') == (entry(0), entry(3))


@pytest.mark.parametrize(
    ('new', 'fault'),
    [
        (entry(0), 'is there as key of n1'),
        (entry(2, 'n9'), 'was revoked for good as key of ctl'),
        (entry(3, 'n1', 'controller'), 'n1 is a node: revoke its keys'),
    ],
)
def test_an_entry_that_cannot_be_added_is_refused(new, fault):
    with pytest.raises(errors.KeysError, match=fault):
        allow_list.with_added_key(ENTRIES, new)


def test_a_name_whose_keys_are_revoked_may_get_another_role():
    assert (
        allow_list.with_added_key(ENTRIES, entry(3, 'ctl'))[-1].role == 'node'
    )


def test_revoking_a_key_leaves_the_others_of_its_name():
    after, gone = allow_list.with_revoked_keys(ENTRIES, KEYS[0], NOW)
    assert [e.public for e in gone] == [KEYS[0]]
    assert [e.revoked for e in after] == [True, False, True]
    assert after[0].revoked_at == NOW


def test_revoking_a_name_revokes_all_its_keys():
    after, gone = allow_list.with_revoked_keys(ENTRIES, 'n1', NOW)
    assert len(gone) == 2
    assert all(e.revoked for e in after)
    assert after[2] == ENTRIES[2]


@pytest.mark.parametrize(
    ('what', 'fault'),
    [('ctl', 'revoked already'), ('n', 'neither a name nor a key')],
)
def test_an_unknown_key_cannot_be_revoked(what, fault):
    with pytest.raises(errors.KeysError, match=fault):
        allow_list.with_revoked_keys(ENTRIES, what, NOW)


def test_public_keys_can_be_arguments_of_a_command():
    assert not any(keyring.new_pair()[0].startswith('-') for _ in range(300))
