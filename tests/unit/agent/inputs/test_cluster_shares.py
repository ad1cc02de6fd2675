# SPDX-License-Identifier: Apache-2.0

"""What agents make of the queue's share tree."""

import json

import pytest

from nova_fairness import exception
from nova_fairness.agent.comms import peering
from nova_fairness.agent.inputs import cluster_shares
from nova_fairness.agent.inputs import nova_facts
from nova_fairness.runtime import signatures
from nova_fairness.runtime import state_file
from nova_fairness.shares import tree as tree_module
from oslo_messaging_zmq.keys import admin
from oslo_messaging_zmq.keys import keyring
from tests.fixtures.patience import wait_for_value
from tests.integration import fake_ends


def account(name, share=1.0, parent=None, fair_share=1.0):
    return {
        'name': name,
        'parent': parent,
        'share': share if share == 'much' else float(share),
        'fair_share': fair_share,
    }


def told(*accounts, **more):
    """What the service says."""
    return {
        'version': tree_module.accounts_hash(list(accounts)),
        'accounts': list(accounts),
        **more,
    }


def weights(tree, *owners, with_history=False):
    shares = cluster_shares.Shares(tree)
    return dict(shares.weights(owners, with_history=with_history))


ONE_TO_THREE = told(account('reds', 1), account('blues', 3))


def test_weights_follow_shares_and_have_a_mean_of_one():
    assert weights(ONE_TO_THREE, 'reds', 'blues') == {
        'reds': 0.5,
        'blues': 1.5,
    }


def test_shares_count_among_present_users():
    tree = told(
        account('left', 1),
        account('right', 1),
        account('l1', 9, 'left'),
        account('l2', 1, 'left'),
        account('r1', 1, 'right'),
    )
    assert weights(tree, 'l2', 'r1') == {'l2': 1.0, 'r1': 1.0}
    all_three = weights(tree, 'l1', 'l2', 'r1')
    assert all_three == pytest.approx({'l1': 1.35, 'l2': 0.15, 'r1': 1.5})


def test_a_user_has_the_summed_shares_of_all_projects():
    tree = told(
        account('reds', 1),
        account('blues', 1),
        account('reds/ann', 1, 'reds'),
        account('reds/bob', 3, 'reds'),
        account('blues/ann', 1, 'blues'),
    )
    assert weights(tree, 'ann', 'bob') == pytest.approx(
        {'ann': 1.25, 'bob': 0.75}
    )


def test_a_user_outside_the_tree_has_no_weight_of_it():
    assert weights(ONE_TO_THREE, 'reds', 'stranger') == {'reds': 1.0}
    assert weights(ONE_TO_THREE, 'stranger') == {}


def test_an_account_without_a_share_has_the_smallest_weight():
    tree = told(account('none', 0), account('all', 1))
    found = weights(tree, 'none', 'all')
    assert found == {'none': cluster_shares.MIN_WEIGHT, 'all': 2.0}


def test_earlier_use_counts_with_history():
    tree = told(
        account('reds', 1, fair_share=0.25),
        account('blues', 1, fair_share=0.75),
    )
    assert weights(tree, 'reds', 'blues') == {'reds': 1.0, 'blues': 1.0}
    assert weights(tree, 'reds', 'blues', with_history=True) == {
        'reds': 0.5,
        'blues': 1.5,
    }


BAD = {
    'no object': ['tree'],
    'no accounts': {'version': 'v2'},
    'nothing new of another version': {'version': 'v2', 'accounts': None},
    'a share below 0': told(account('reds', -1)),
    'a share that is no number': told(account('reds', 'much')),
    'a circle': told(account('a', 1, 'b'), account('b', 1, 'a')),
    'a parent that is not there': told(account('a', 1, 'b')),
    'a name twice': told(account('a'), account('a')),
}


@pytest.mark.parametrize('answer', BAD.values(), ids=list(BAD))
def test_an_answer_without_a_valid_share_tree_is_refused(answer):
    with pytest.raises(exception.ReportRefused, match='share tree'):
        cluster_shares.Shares(answer)


class FakeService:
    """Says a tree, or that it is away."""

    def __init__(self, tree):
        self.tree = tree
        self.asked = []

    def __call__(self, known):
        self.asked.append(known)
        if isinstance(self.tree, Exception):
            raise self.tree
        if known == self.tree['version']:
            return {**self.tree, 'accounts': None}
        return self.tree


@pytest.fixture
def connect(tmp_path):
    made = []

    def connected(service, judge=None):
        shares = cluster_shares.ClusterShares(
            nova_facts.NoCloud(),
            service,
            state_file.StateFile(tmp_path / 'shares.json'),
            0.0,
            with_history=False,
            signatures=judge,
        )
        made.append(shares)
        shares.start(lambda _: None)
        return shares

    yield connected
    for shares in made:
        shares.stop()


def is_reds(shares, weight):
    return lambda: shares.weights(['reds', 'blues']).get('reds') == weight


def test_a_new_share_tree_is_used_and_a_known_tree_is_not_sent(connect):
    service = FakeService(ONE_TO_THREE)
    shares = connect(service)
    wait_for_value(is_reds(shares, 0.5))
    wait_for_value(lambda: shares.weights([]) == {} and service.asked[-1])
    assert service.asked[-1] == ONE_TO_THREE['version']
    service.tree = told(account('reds', 1), account('blues', 1))
    wait_for_value(is_reds(shares, 1.0))


def test_the_last_share_tree_counts_while_the_service_is_away(
    connect, tmp_path, caplog
):
    service = FakeService(ONE_TO_THREE)
    wait_for_value(is_reds(connect(service), 0.5))
    away = connect(FakeService(exception.HostNotReached('nobody answers')))
    assert away.weights(['reds', 'blues'])['reds'] == 0.5
    wait_for_value(lambda: 'shares of the queue: query failed' in caplog.text)
    assert away.weights(['reds', 'blues'])['reds'] == 0.5


def test_an_invalid_answer_is_logged_and_changes_nothing(connect, caplog):
    wait_for_value(is_reds(connect(FakeService(ONE_TO_THREE)), 0.5))
    lying = connect(FakeService({'version': 'v2', 'accounts': 'none'}))
    wait_for_value(
        lambda: lying.weights([]) == {} and 'ReportRefused' in caplog.text
    )
    assert lying.weights(['reds', 'blues'])['reds'] == 0.5


@pytest.fixture
def judge(tmp_path):
    """What judges by the keys of a domain, in the name of one of them."""
    keys = tmp_path / 'keys'
    for name, role in (('c1', 'controller'), ('n1', 'node')):
        admin.make(keys, name, role)

    def of(name, domain='d'):
        return signatures.Signatures(
            keyring.Keyring(f'{keys}/{name}.secret'), domain
        )

    return of


def test_a_tree_that_no_controller_signed_for_the_domain_is_refused(
    connect, judge, caplog
):
    good = judge('c1').signed_tree(ONE_TO_THREE['version'])
    other = told(account('reds', 1), account('blues', 1))
    for tree in (
        ONE_TO_THREE,
        {**other, **good},
        {**ONE_TO_THREE, **good, 'origin': 'n1'},
        {
            **ONE_TO_THREE,
            **judge('c1', 'another').signed_tree(ONE_TO_THREE['version']),
        },
    ):
        caplog.clear()
        shares = connect(FakeService(tree), judge('n1'))
        wait_for_value(
            lambda made=shares: (
                made.weights([]) == {} and 'of the share tree' in caplog.text
            )
        )
        assert shares.weights(['reds']) == {}
    signed = connect(FakeService({**ONE_TO_THREE, **good}), judge('n1'))
    wait_for_value(is_reds(signed, 0.5))


def test_a_node_cannot_sign_a_share_tree(judge):
    with pytest.raises(exception.NotAllowed, match='controller'):
        judge('n1').signed_tree('v1')


@pytest.mark.parametrize('text', ['{', '[]', json.dumps(BAD['a circle'])])
def test_an_unreadable_file_is_reported_and_kept(
    connect, tmp_path, caplog, text
):
    (tmp_path / 'shares.json').write_text(text)
    shares = connect(FakeService(ONE_TO_THREE))
    assert 'shares.json cannot be read' in caplog.text
    wait_for_value(is_reds(shares, 0.5))


@pytest.fixture
def conf(tmp_path):
    return fake_ends.configuration(
        '', tmp_path, 'n1', {'quota_source': 'shares'}
    )


def test_without_a_transport_the_service_cannot_be_asked(conf, tmp_path):
    with pytest.raises(exception.ConfigurationError, match='transport_url'):
        cluster_shares.connect(
            conf, nova_facts.NoCloud(), peering.Peering(), tmp_path
        )


@pytest.mark.parametrize('source', ['', 'cores'])
def test_without_a_share_tree_all_users_have_equal_weights(
    conf, tmp_path, source
):
    conf.set_override('quota_source', source, group='fairness')
    alone = nova_facts.NoCloud()
    assert (
        cluster_shares.connect(conf, alone, peering.Peering(), tmp_path)
        is alone
    )
