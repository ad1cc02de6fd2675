# SPDX-License-Identifier: Apache-2.0

"""What is believed of an agent that says what is used."""

import logging

import pytest

from nova_fairness import exception
from nova_fairness.cluster import measuring
from nova_fairness.shares import measured


def told(**more):
    users = {'ann': {'usage_parts': {'cpu_time': 0.25, 'memory': None}}}
    return {'host': 'n1', 'round': 3, 'entity': 'user', 'users': users} | more


@pytest.mark.parametrize('entity', ['user', 'project'])
def test_what_an_agent_says_is_known(entity):
    found = measuring.Measuring(lambda: told(entity=entity)).measured()
    assert found == measured.Measured(
        entity == 'project', {'ann': {'cpu_time': 0.25}}
    )


@pytest.mark.parametrize(
    'answer',
    [
        None,
        [],
        {},
        told(round=None),
        told(users=None),
        told(users={'ann': 3}),
        told(users={'ann': {'usage_parts': 3}}),
    ],
)
def test_nonsense_is_as_if_nobody_answered(answer, caplog):
    with caplog.at_level(logging.WARNING):
        assert measuring.Measuring(lambda: answer).measured() is None
    assert 'what is allocated is charged' in caplog.text


@pytest.mark.parametrize('part', [-1.0, float('nan'), float('inf'), 'much'])
def test_what_is_no_part_is_not_known(part):
    users = {'ann': {'usage_parts': {'cpu_time': part, 'memory': 0.5}}}
    found = measuring.Measuring(lambda: told(users=users)).measured()
    assert found.parts == {'ann': {'memory': 0.5}}


def test_an_outage_is_told_once_and_its_end(caplog):
    answers = [told()]

    def ask():
        if not answers:
            raise exception.HostNotReached('no answer within 5 s')
        return answers[0]

    measures = measuring.Measuring(ask)
    with caplog.at_level(logging.INFO):
        assert measures.measured()
        kept = answers.pop()
        assert measures.measured() is None
        assert measures.measured() is None
        answers.append(kept)
        assert measures.measured()
        assert measures.measured()
    assert len(caplog.messages) == 2
    assert 'no answer within 5 s' in caplog.messages[0]
