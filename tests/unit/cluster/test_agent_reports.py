# SPDX-License-Identifier: Apache-2.0

"""What is believed of an agent that says what is used."""

import logging

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness.cluster import agent_reports
from nova_fairness.shares import measured


def agent_report(**more):
    users = {'ann': {'usage_parts': {'cpu_time': 0.25, 'memory': None}}}
    return {'host': 'n1', 'round': 3, 'entity': 'user', 'users': users} | more


@pytest.mark.parametrize('entity', ['user', 'project'])
def test_a_valid_report_of_an_agent_is_used(entity):
    found = agent_reports.ReportedUse(
        lambda: agent_report(entity=entity)
    ).measured(1)
    assert found == measured.MeasuredUse(
        entity == 'project', {'ann': {'cpu_time': 0.25}}
    )


@pytest.mark.parametrize(
    'answer',
    [
        None,
        [],
        {},
        agent_report(round=None),
        agent_report(users=None),
        agent_report(users={'ann': 3}),
        agent_report(users={'ann': {'usage_parts': 3}}),
    ],
)
def test_an_invalid_report_counts_as_no_answer(answer, caplog):
    with caplog.at_level(logging.WARNING):
        assert agent_reports.ReportedUse(lambda: answer).measured(1) is None
    assert 'what is allocated is charged' in caplog.text


@pytest.mark.parametrize('part', [-1.0, float('nan'), float('inf'), 'much'])
def test_a_fraction_out_of_range_counts_as_unknown(part):
    users = {'ann': {'usage_parts': {'cpu_time': part, 'memory': 0.5}}}
    found = agent_reports.ReportedUse(
        lambda: agent_report(users=users)
    ).measured(1)
    assert found.parts == {'ann': {'memory': 0.5}}


def test_an_outage_of_agents_and_its_end_are_logged_once(caplog):
    answers = [agent_report()]

    def ask():
        if not answers:
            raise exception.HostNotReached('no answer within 5 s')
        return answers[0]

    measures = agent_reports.ReportedUse(ask)
    with caplog.at_level(logging.INFO):
        assert measures.measured(1)
        kept = answers.pop()
        assert measures.measured(1) is None
        assert measures.measured(1) is None
        answers.append(kept)
        assert measures.measured(1)
        assert measures.measured(1)
    assert len(caplog.messages) == 2
    assert 'no answer within 5 s' in caplog.messages[0]


def report_of_host(host, **parts):
    users = {
        owner: {'usage_parts': {'cpu_time': n}} for owner, n in parts.items()
    }
    return agent_report(host=host, users=users)


def test_of_three_agents_the_median_counts_and_the_outlier_is_named(caplog):
    for lie in (0.0, 1.0, 1e308):
        answers = [
            report_of_host('a', ann=0.2),
            report_of_host('b', ann=lie),
            report_of_host('c', ann=0.21),
        ]
        for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1]):
            given = [answers[place] for place in order]
            measures = agent_reports.ReportedUse(lambda given=given: given)
            found = measures.measured(1)
            assert 0.2 <= found.parts['ann']['cpu_time'] <= 0.21
            assert list(measures.outliers) == ['b']
    assert 'agent of host b' in caplog.text
    assert 'cpu_time of ann' in caplog.text


def test_an_agent_with_the_name_of_another_does_not_take_its_place():
    """No answer proves whose it is: the name in it is what an agent says."""
    answers = [
        report_of_host('a', ann=0.2),
        report_of_host('a', ann=0.0),
        report_of_host('c', ann=0.21),
    ]
    for order in ([0, 1, 2], [1, 0, 2], [2, 1, 0]):
        given = [answers[place] for place in order]
        measures = agent_reports.ReportedUse(lambda given=given: given)
        assert measures.measured(1).parts['ann']['cpu_time'] == 0.21
        assert list(measures.outliers) == ['a']


def test_agents_measured_at_other_times_are_no_outliers(caplog):
    answers = [
        report_of_host('a', ann=0.5),
        report_of_host('b', ann=0.54),
        report_of_host('c', ann=0.46),
    ]
    measures = agent_reports.ReportedUse(lambda: answers)
    assert measures.measured(1).parts == {'ann': {'cpu_time': 0.5}}
    assert (measures.outliers, caplog.text) == ({}, '')


def test_an_agent_that_answers_for_three_hosts_counts_once():
    lies = [report_of_host('b', ann=1.0)] * 2
    measures = agent_reports.ReportedUse(
        lambda: [*lies, report_of_host('a', ann=0.2)]
    )
    assert measures.measured(1).parts == {'ann': {'cpu_time': 0.2}}


@pytest.mark.parametrize(
    ('hosts', 'answers', 'is_believed'),
    [
        (1, 'a', True), (2, 'a', False), (2, 'ab', True), (3, 'ab', False),
        (3, 'aab', False), (3, 'abc', True), (1000, 'ab', False),
        (1000, 'abc', True), (1000, 'abcde', True),
    ],
)  # fmt: skip
def test_fewer_than_three_agents_are_believed_of_fewer_hosts_only(
    hosts, answers, is_believed, caplog
):
    measures = agent_reports.ReportedUse(
        lambda: [report_of_host(host, ann=0.0) for host in answers]
    )
    assert bool(measures.measured(hosts)) == is_believed
    assert ('expected' in caplog.text) != is_believed


def test_one_of_five_agents_cannot_change_the_result():
    for lie in (0.0, 1.0):
        answers = [report_of_host(host, ann=0.2) for host in 'abcd']
        measures = agent_reports.ReportedUse(lambda a=answers, n=lie: [
            *a, report_of_host('e', ann=n)
        ])  # fmt: skip
        assert measures.measured(9).parts == {'ann': {'cpu_time': 0.2}}
        assert list(measures.outliers) == ['e']


def test_an_agent_that_is_unreadable_or_compares_others_delays_no_other():
    answers = [
        report_of_host('a', ann=0.2),
        {'host': 'b', 'users': 3},
        report_of_host('c', ann=0.2),
        {**report_of_host('d', p=0.9), 'entity': 'project'},
    ]
    measures = agent_reports.ReportedUse(lambda: answers)
    assert measures.measured(1).parts == {'ann': {'cpu_time': 0.2}}
    assert list(measures.outliers) == ['b', 'd']
    answers[1:] = []
    assert measures.measured(1)
    assert measures.outliers == {}


JUNK = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.floats(), st.text(max_size=5),
        st.sampled_from([10**400, -(10**400), 1e308, '1', '\ud800', '']),
        st.integers(-5, 5),
    ),
    lambda each: st.one_of(
        st.lists(each, max_size=3),
        st.dictionaries(st.text(max_size=3), each, max_size=3),
    ),
    max_leaves=5,
)  # fmt: skip


def answer():
    named = st.sampled_from(['p', 'p/u', 'u', 'q', 'nobody', '', '/', 7])
    parts = st.dictionaries(st.sampled_from(['cpu_time', 'memory', 'x']), JUNK)
    user = st.one_of(JUNK, st.fixed_dictionaries({'usage_parts': parts}))
    users = st.one_of(JUNK, st.dictionaries(named, user, max_size=4))
    return st.fixed_dictionaries(
        {'users': users},
        optional={
            'round': JUNK, 'host': JUNK, 'idle': JUNK, 'instances': JUNK,
            'entity': st.sampled_from(['user', 'project', 3]),
            'cpus_count': JUNK,
        },
    )  # fmt: skip


CAPACITY = {'VCPU': 100.0, 'MEMORY_MB': 1000.0}


@hypothesis.given(
    st.one_of(JUNK, answer(), st.lists(st.one_of(JUNK, answer()), max_size=4)),
    st.sampled_from([measured.Charge.USED, measured.Charge.LARGER]),
)
@hypothesis.settings(deadline=None)
def test_no_user_is_charged_beyond_reason_for_any_reports_of_agents(
    agent_report, charge
):
    found = agent_reports.ReportedUse(lambda: agent_report).measured(1)
    own = {'p/u': np.array([4.0, 10.0]), 'q/u': np.array([0.0, 0.0])}
    most = {'VCPU': 2.0}
    charged = measured.charged_amounts(
        charge, own, {}, 0.0, found, CAPACITY, most
    )
    for name, amounts in charged.items():
        least = own[name] * (1 if charge is measured.Charge.LARGER else 0)
        assert (amounts >= least).all()
        assert (amounts <= own[name] * np.array([2.0, 1.0]) + 1e-9).all()


@hypothesis.given(st.one_of(JUNK, answer()))
@hypothesis.settings(deadline=None)
def test_any_report_of_an_agent_is_read_or_refused(agent_report):
    if isinstance(agent_report, dict):
        agent_report = {**agent_report, 'host': 'h'}
    for read in (agent_reports._idle_seconds, agent_reports._parse_wants):
        try:
            read('h', agent_report)
        except exception.BadArgument:
            continue


def test_an_invalid_entry_of_a_report_hides_no_others():
    odd = {'a': 10**400, 'b': float('nan'), 'c': True, 'd': 5.0}
    assert agent_reports._idle_seconds('h', {'host': 'h', 'idle': odd}) == {
        'd': 5.0
    }
