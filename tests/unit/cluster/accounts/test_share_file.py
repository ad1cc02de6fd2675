# SPDX-License-Identifier: Apache-2.0

import logging
import zoneinfo

import pytest

from nova_fairness import exception
from nova_fairness.cluster.accounts import share_file
from nova_fairness.model import cluster

GOOD = """
accounts:
- {name: physics, share: 70}
- {name: 0012e4, parent: physics, share: 0.5}
- {name: thesis group, parent: 0012e4}
- {name: 0012e4/ann, parent: thesis group, share: 1e3}
- {name: 0012e4/bob, parent: 0012e4, share: 0}
"""
READ = (
    cluster.Account('physics', None, 70.0),
    cluster.Account('0012e4', 'physics', 0.5),
    cluster.Account('thesis group', '0012e4', 1.0),
    cluster.Account('0012e4/ann', 'thesis group', 1000.0),
    cluster.Account('0012e4/bob', '0012e4', 0.0),
)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / 'shares.yaml'
    path.write_text(GOOD)
    return path


def replace(path, text):
    other = path.with_suffix('.new')
    other.write_text(text)
    other.replace(path)


def listed(*accounts):
    return '\n'.join(['accounts:', *(f'- {{{each}}}' for each in accounts)])


def window(text):
    return listed(f'name: a, windows: [{{{text}}}]')


def test_a_tree_of_any_depth_is_read(path):
    assert share_file.read(path) == READ


def test_times_in_the_share_file_have_units(path):
    path.write_text(listed('name: a, time_limit: 12h, longest_wait: 90'))
    assert share_file.read(path) == (
        cluster.Account('a', None, 1.0, 43200.0, 90.0),
    )


def test_budgets_windows_and_ceilings_are_read(path):
    night = 'begins: 0 20 * * mon-fri, lasts: 10h'
    zone = 'zone: Europe/Zurich'
    path.write_text(
        listed(
            f'name: a, budget: 9.5, windows: [{{{night}, {zone}}}],'
            ' ceiling: {VCPU: 40, MEMORY_MB: 0}'
        )
    )
    [account] = share_file.read(path)
    assert account.budget_hours == 9.5
    assert account.ceiling == (('MEMORY_MB', 0), ('VCPU', 40))
    assert account.windows == (
        cluster.Window(
            '0 20 * * mon-fri', 36000.0, zoneinfo.ZoneInfo('Europe/Zurich')
        ),
    )


def test_quotas_are_read_as_kueue_names_them(path):
    path.write_text(
        listed(
            'name: a, nominal: {VCPU: 40, CUSTOM_GOLD: 1}, borrowing_limit:'
            ' {VCPU: 0}, lending_limit: {VCPU: 10}'
        )
    )
    assert share_file.read(path) == (
        cluster.Account(
            'a',
            nominal=(('CUSTOM_GOLD', 1), ('VCPU', 40)),
            borrowing_limit=(('VCPU', 0),),
            lending_limit=(('VCPU', 10),),
        ),
    )


def test_a_list_may_be_empty(path):
    path.write_text('accounts: []')
    assert share_file.read(path) == ()


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('', 'is empty'),
        ('[', 'line 1: expected YAML: expected the node'),
        ('\x00', 'line 1: expected YAML'),
        ('[' * 5000, 'cannot be read: it is nested too deep'),
        ('- a', 'line 1: expected accounts'),
        ('account: []', "line 1: unknown key 'account', there is accounts"),
        ('accounts: 7', 'accounts must be a list'),
        ('accounts: []\naccounts: []', 'line 2: the key accounts comes twi'),
        (listed('share: 1'), 'line 2: an account must have a name'),
        (
            listed('name: a', 'name: b', 'name: a'),
            "line 4: account 'a' comes twice",
        ),
        (listed('name: a, share: 1, share: 2'), 'the key share comes twice'),
        (listed('name: a', 'name: b, shares: 2'), "line 3: unknown key 'shar"),
        (listed('name: [a]'), 'expected a text'),
        (
            listed('name: a, time_limit: soon'),
            "time_limit of account 'a': exp",
        ),
        (
            listed('name: a, longest_wait: 0'),
            "longest wait of account 'a' must",
        ),
        (listed('name: ""'), 'expected a text'),
        (listed('name: ' + 'a' * 256), 'of 1 to 255 printable characters'),
        (listed('name: "a\\x1b"'), 'line 2: expected a text'),
        (
            listed('name: a, share: much'),
            "share of account 'a': expected a number",
        ),
        (listed('name: a, ceiling: {}'), 'must give classes amounts'),
        (listed('name: a, ceiling: 4'), 'must give classes amounts'),
        (listed('name: a, ceiling: {vcpus: 4}'), "line 2: 'vcpus' is no res"),
        (listed('name: a, ceiling: {VCPU: -4}'), "amount of VCPU, got '-4'"),
        (listed('name: a, ceiling: {VCPU: 4.5}'), "amount of VCPU, got '4.5'"),
        (listed('name: a, ceiling: {VCPU: [4]}'), 'expected a text'),
        (listed('name: a, ceiling: {VCPU: 4, VCPU: 5}'), 'VCPU comes twice'),
        (listed('name: a, windows: []'), 'a list of at least one'),
        (listed('name: a, windows: night'), 'a list of at least one'),
        (window('begins: 0 20 * * *'), 'must have begins and lasts'),
        (
            window('begins: 0 20 * * *, lasts: long'),
            '"lasts" of a window: exp',
        ),
        (window('begins: 0 20 * * *, lasts: 0'), 'must last more than 0 s'),
        (window('begins: at 8, lasts: 1h'), "five fields, got 'at 8'"),
        (
            window('begins: 0 20 * * *, lasts: 1h, zone: Mars/Base'),
            "line 2: there is no time zone 'Mars/Base'",
        ),
        (
            window('begins: 0 20 * * *, lasts: 1h, ends: 2h'),
            "unknown key 'ends'",
        ),
        (listed('name: a, nominal: {VCPUS: 4}'), "'VCPUS' is no resource cl"),
        (listed('name: a, lending_limit: 4'), 'lending_limit must give clas'),
        (listed('name: a, borrowing_limit: {VCPU: x}'), "VCPU, got 'x'"),
        (
            listed('name: p', 'name: p/u, parent: p, nominal: {VCPU: 4}'),
            "line 3: account 'p/u' is that of a user, who has no nominal",
        ),
        (
            listed('name: b', 'name: a, share: -1'),
            "line 3: share of account 'a' must .* from 0 to 1e.09, got -1",
        ),
        (
            listed('name: a, share: 1e10'),
            "line 2: share of account 'a' must be a number from",
        ),
        (
            listed('name: a, share: nan'),
            "line 2: share of account 'a' must be a number from",
        ),
        (listed('name: a, budget: much'), "budget of account 'a': expected"),
        (listed('name: a, budget: -1'), "budget of account 'a' must be"),
        (listed('name: a, budget: nan'), "budget of account 'a' must be"),
        (
            listed('name: a, parent: b'),
            "line 2: parent 'b' of account 'a' is not in",
        ),
        (
            listed('name: a, parent: b', 'name: c, share: -1'),
            "line 2: parent 'b' .*; line 3: share of account 'c'",
        ),
        (listed('name: a, parent: a'), 'line 2: accounts form a circle: a > '),
        (
            listed('name: a, parent: c', 'name: b, parent: a', 'name: c')
            + '\n- {name: d, parent: d}',
            'line 5: accounts form a circle: d > d',
        ),
        (
            listed('name: a, parent: b', 'name: b, parent: a'),
            'accounts form a circle: a > b > a',
        ),
        (listed('name: p/ann'), "'p/ann' is that of a user of project 'p'"),
        (
            listed('name: p', 'name: q', 'name: p/ann, parent: q'),
            "project 'p' and must be below it",
        ),
    ],
)
def test_the_fault_of_a_share_file_is_named(path, text, said):
    path.write_text(text)
    with pytest.raises(exception.BadShares, match=said) as caught:
        share_file.read(path)
    assert str(path) in str(caught.value)
    assert '\n' not in str(caught.value)


def test_too_many_accounts_are_refused(path, monkeypatch):
    monkeypatch.setattr(share_file, 'MOST', 4)
    with pytest.raises(exception.BadShares, match='a list, 4 at most'):
        share_file.read(path)


def test_the_share_file_is_read_again_after_a_change(path):
    shares = share_file.open_watched_file(path)
    before = shares.content()
    assert before == READ
    assert shares.content() is before
    replace(path, listed('name: a'))
    assert shares.content() == (cluster.Account('a'),)


@pytest.mark.parametrize('text', [None, listed('name: a, share: -1')])
def test_an_unusable_file_leaves_the_earlier_shares(path, caplog, text):
    shares = share_file.open_watched_file(path)
    if text is None:
        path.unlink()
    else:
        replace(path, text)
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            assert shares.content() == READ
    assert len(caplog.messages) == 1
    assert str(path) in caplog.messages[0]
    replace(path, listed('name: b'))
    assert shares.content() == (cluster.Account('b'),)


def test_an_unusable_share_file_at_start_is_refused(path):
    path.write_text('nonsense')
    with pytest.raises(exception.BadShares):
        share_file.open_watched_file(path)
