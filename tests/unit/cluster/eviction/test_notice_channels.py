# SPDX-License-Identifier: Apache-2.0

"""Channels by which owners and guests of victims are told."""

import dataclasses

import pytest

from nova_fairness.cluster import withdrawal
from nova_fairness.cluster.eviction import notice_channels
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.model import eviction
from nova_fairness.model import reason
from nova_fairness.model import risk

A, C, S = (
    eviction.EvictionAction,
    eviction.EvictionCause,
    eviction.EvictionState,
)
LEAVE = eviction.Eviction(
    's1',
    'p',
    'u',
    C.TIME_LIMIT,
    reason.why(reason.Reason.TIME_IS_UP, limit_s=60.0),
    (A.SHELVE, A.STOP),
    600.0,
    0.0,
    state=S.TOLD,
)
RISK = risk.EvictionRisk(
    's2',
    'p',
    'u',
    risk.RiskState.AT_RISK,
    reason.why(reason.Reason.AT_RISK, times=2.0, waiting=1.0),
    30.0,
    30.0,
)
AT, AT_RISK_AT = '1970-01-01T00:10:00Z', '1970-01-01T00:00:30Z'


class FakeNova:
    """Keeps metadata of servers."""

    def __init__(self):
        self.metadata = {}

    def write_metadata(self, server, metadata):
        self.metadata.setdefault(server, {}).update(metadata)

    def delete_metadata(self, server, key):
        self.metadata.get(server, {}).pop(key, None)


@pytest.fixture
def nova():
    return FakeNova()


def test_metadata_announce_an_eviction_and_are_removed_afterwards(nova):
    nova.write_metadata('s1', {nova_module.DONE: 'yes', 'mine': 'x'})
    channels = notice_channels.channels_before_steps(nova)
    channels.send_notice(LEAVE)
    told = nova.metadata['s1']
    assert told[notice_channels.LEAVES_AT] == AT
    assert told[notice_channels.LEAVES_BY] == 'shelve'
    assert 'mine' in told
    assert nova_module.DONE not in told
    channels.withdraw_notice('s1')
    assert nova.metadata['s1'] == {'mine': 'x'}


def test_the_reason_stays_in_metadata_of_an_evicted_server(nova):
    nova.write_metadata('s1', {nova_module.DONE: 'yes'})
    retires = dataclasses.replace(LEAVE, cause=C.RETIRES)
    notice_channels.channels_before_steps(nova).send_notice(retires)
    assert nova.metadata['s1'][nova_module.DONE] == 'yes'


def test_metadata_announce_risk_and_are_removed_afterwards(nova):
    channels = notice_channels.channels_before_steps(nova)
    at_risk = {notice_channels.AT_RISK: AT_RISK_AT}
    channels.send_warning(RISK)
    assert nova.metadata['s2'] == at_risk
    channels.send_warning(RISK.over(60.0))
    assert nova.metadata['s2'] == {}
    channels.send_warning(RISK)
    channels.withdraw_warning('s2')
    assert nova.metadata['s2'] == {}


def test_each_step_and_each_warning_is_a_notification():
    posted = []
    channels = notice_channels.channels_after_steps(
        posted.extend, 'c1', reason.Audience.MEMBER
    )
    channels.send_notice(LEAVE)
    channels.send_warning(RISK)
    # Events are not taken back.
    channels.withdraw_notice('s1')
    channels.withdraw_warning('s2')
    assert [(each.event, each.payload['host']) for each in posted] == [
        ('fairness.server.told', 'c1'),
        ('fairness.server.at_risk', 'c1'),
    ]


def test_agents_are_given_the_words_of_the_metadata(nova):
    channels = notice_channels.channels_before_steps(nova)
    channels.send_notice(LEAVE)
    channels.send_warning(RISK)
    assert notice_channels.texts_for_agents([LEAVE], [RISK]) == nova.metadata


def test_agents_are_given_nothing_before_a_notice_begins():
    chosen = dataclasses.replace(LEAVE, state=S.CHOSEN)
    assert notice_channels.texts_for_agents([chosen], []) == {}


def test_a_leaving_server_no_longer_counts_as_at_risk():
    known = dataclasses.replace(RISK, server='s1')
    [told] = notice_channels.texts_for_agents([LEAVE], [known]).values()
    assert notice_channels.AT_RISK not in told


def test_all_that_channels_write_is_withdrawn(nova):
    channels = notice_channels.channels_before_steps(nova)
    channels.send_notice(LEAVE)
    channels.send_warning(RISK)
    written = {key for each in nova.metadata.values() for key in each}
    assert written == set(notice_channels.KEYS)
    assert written <= set(withdrawal.WRITTEN)
