# SPDX-License-Identifier: Apache-2.0

"""One cloud in every form of Slurm's JSON is read alike."""

import dataclasses
import json
import math

import hypothesis
from hypothesis import strategies as st
import pytest

from nova_fairness import exception
from nova_fairness.batch import slurm_forms
from nova_fairness.batch import slurm_json
from tests.fixtures import slurm_written
from tests.fixtures.slurm_written import Job
from tests.fixtures.slurm_written import Node

NOW = 1000.0
MARKED = 'nova-fairness: it goes'
NODES = (
    Node('idle'),
    Node('busy', 'ALLOCATED', ('COMPLETING',), used=4),
    Node('mixed', 'MIXED', used=2),
    Node('ours', 'IDLE', ('DRAIN',), 4, 0, MARKED, 900),
    Node('fresh', 'IDLE', ('DRAIN',), 4, 0, MARKED, 995),
    Node('theirs', 'MIXED', ('DRAIN',), 4, 1, 'bad disk', 900),
    Node('away', 'IDLE', ('NOT_RESPONDING',)),
    Node('down', 'DOWN', (), 4, 0, 'Not responding', 3),
    Node('off', 'IDLE', ('CLOUD', 'POWERED_DOWN')),
)
JOBS = (
    Job(1, 'RUNNING', cpus=3, nodes=2, ended=2000, limit=60,
        where=(('busy', 2), ('mixed', 1))),
    Job(2, 'RUNNING', 'COMPLETING', cpus=2, ended=999, limit=60,
        where=(('busy', 2),)),
    Job(3, 'COMPLETED', ended=998, limit=60, where=(('ours', 1),)),
    Job(4, 'CANCELLED', 'COMPLETING', where=(('mixed', 1),), ended=990),
    Job(5, 'SUSPENDED', where=(('theirs', 1),), ended=5000),
    Job(6, submitted=5, eligible=6),
    Job(7, submitted=5, cpus=8, nodes=2, tasks='1-9:2%3'),
    Job(8, why='Dependency'),
    Job(9, flag='REQUEUE_HOLD'),
    Job(10, 'FAILED', 'REVOKED', ended=997, where=(('idle', 1),)),
)  # fmt: skip
WHOLE = Job(11, cpus=2, nodes=2, whole=True)


def seen(form, nodes=NODES, jobs=JOBS, rest=False):
    return slurm_json.parse_snapshot(
        slurm_written.answer(form, 'nodes', nodes, rest),
        slurm_written.answer(form, 'jobs', jobs, rest),
        NOW,
    )


@pytest.mark.parametrize('rest', [False, True])
@pytest.mark.parametrize('form', slurm_written.FORMS)
def test_the_same_state_is_read_alike_in_every_json_form(form, rest):
    found = seen(form, rest=rest)
    assert found.faults == ()
    assert found == seen(38)
    work = {
        name: [(each.name, each.cores, each.gone_at) for each in place.work]
        for name, place in found.places.items()
    }
    assert work == {
        'idle': [],
        'busy': [('1', 2.0, 2000.0), ('2', 2.0, 999.0)],
        'mixed': [('1', 1.0, 2000.0), ('4', 1.0, None)],
        'ours': [('what Slurm may not have saved', 0.0, 1008.0)],
        'fresh': [('what Slurm may not have saved', 0.0, 1005.0)],
        'theirs': [('5', 1.0, None)],
        'away': [],
        'down': [],
        'off': [],
    }
    assert [name for name, each in found.places.items() if each.takes] == [
        *('idle', 'busy', 'mixed')
    ]
    assert [name for name, each in found.places.items() if each.ours] == [
        *('ours', 'fresh')
    ]
    assert [name for name, each in found.places.items() if not each.up] == [
        *('away', 'down', 'off')
    ]
    assert [(w.name, w.cores, w.since, w.part) for w in found.wants] == [
        ('6', 1.0, 6.0, 1.0),
        ('7', 8.0, 5.0, 4.0),
        ('7+1', 8.0, 5.0, 4.0),
        ('7+2', 8.0, 5.0, 4.0),
    ]


@pytest.mark.parametrize('form', slurm_written.FORMS)
def test_a_job_wants_whole_nodes_where_the_form_tells(form):
    (want,) = seen(form, jobs=[WHOLE]).wants
    assert want.cores == (2 if form == slurm_forms.SILENT else 8)


STATES = 'IDLE', 'MIXED', 'ALLOCATED', 'DOWN', 'UNKNOWN'
NODE_FLAGS = 'DRAIN', 'COMPLETING', 'NOT_RESPONDING', 'RESERVED', 'PLANNED'
TIMES = st.integers(0, 2000)
SMALL = st.integers(0, 9)
CLOUDS = st.tuples(
    st.lists(
        st.builds(
            Node,
            st.sampled_from('abcd'),
            st.sampled_from(STATES),
            st.lists(st.sampled_from(NODE_FLAGS), unique=True).map(tuple),
            SMALL,
            SMALL,
            st.sampled_from(('', MARKED, 'bad disk')),
            TIMES,
        ),
        unique_by=lambda each: each.name,
    ),
    st.lists(
        st.builds(
            Job,
            st.integers(1, 10**6),
            st.sampled_from(('PENDING', 'RUNNING', 'SUSPENDED', 'TIMEOUT')),
            st.sampled_from(('', '', 'COMPLETING', 'CONFIGURING', 'REVOKED')),
            st.sampled_from(('Resources', 'Priority', 'None', 'Licenses')),
            SMALL,
            st.integers(1, 5),
            st.booleans(),
            st.sampled_from(('', '3', '1-9%2', '5,7,...')),
            TIMES,
            TIMES,
            TIMES,
            st.none() | SMALL,
            st.lists(
                st.tuples(st.sampled_from('abcd'), st.integers(1, 4)),
                unique_by=lambda each: each[0],
            ).map(tuple),
        ).map(
            # What runs has the cores that it was given.
            lambda it: (
                dataclasses.replace(it, cpus=sum(n for _, n in it.where))
                if it.where
                else it
            )
        )
    ),
)


@hypothesis.given(CLOUDS, st.sampled_from((39, 40, 41, 42, 43, 44)))
def test_any_random_state_is_read_alike_in_every_json_form(cloud, form):
    assert seen(form, *cloud) == seen(38, *cloud)


def without(form, key, field):
    """An answer whose first entry lacks a field, and the others none."""
    entries = NODES if key == 'nodes' else JOBS
    answer = json.loads(slurm_written.answer(form, key, entries))
    del answer[key][0][field]
    return json.dumps(answer)


@pytest.mark.parametrize('form', slurm_written.FORMS)
@pytest.mark.parametrize(
    ('key', 'field'),
    [('nodes', 'architecture'), ('jobs', 'user_name')],
)
def test_an_optional_field_of_slurm_may_be_missing(form, key, field):
    texts = {
        each: slurm_written.answer(form, each, entries)
        for each, entries in (('nodes', NODES), ('jobs', JOBS))
    }
    texts[key] = without(form, key, field)
    assert slurm_json.parse_snapshot(**texts, now=NOW) == seen(form)


@pytest.mark.parametrize('form', slurm_written.FORMS)
@pytest.mark.parametrize('field', slurm_written.MATTER['nodes'])
def test_a_node_without_a_needed_field_is_named_and_set_aside(form, field):
    found = slurm_json.parse_snapshot(
        without(form, 'nodes', field),
        slurm_written.answer(form, 'jobs', JOBS),
        NOW,
    )
    name = 'without a name' if field == 'name' else 'idle'
    (fault,) = found.faults
    assert f"node {name}: its entry cannot be read: it has no '{field}'" in (
        fault
    )
    assert 'idle' not in found.places
    assert found.places.keys() == seen(form).places.keys() - {'idle'}


@pytest.mark.parametrize('form', slurm_written.FORMS)
@pytest.mark.parametrize(
    ('job', 'fields'),
    [
        (
            dataclasses.replace(JOBS[0], number=100),
            {'job_state', 'time_limit', 'end_time'},
        ),
        (
            dataclasses.replace(JOBS[6], number=100),
            {'job_state', 'state_reason', 'cpus', 'node_count'}
            | {'array_task_string', 'eligible_time', 'submit_time'},
        ),
        (dataclasses.replace(JOBS[2], number=100), {'job_state', 'end_time'}),
    ],
)
def test_a_job_without_a_needed_field_is_named_and_set_aside(
    form, job, fields
):
    for field in fields:
        entry = slurm_written.job(form, job)
        del entry[field]
        found = seen(form, jobs=[entry, *JOBS])
        (fault,) = found.faults
        assert f"job 100: its entry cannot be read: it has no '{field}'" in (
            fault
        )
        assert found.wants == seen(form).wants


@pytest.mark.parametrize(
    ('value', 'expected'),
    [
        (3, 3.0),
        ('3', 3.0),
        (None, None),
        ('Infinity', math.inf),
        ({'set': True, 'infinite': False, 'number': 3}, 3.0),
        ({'set': False, 'infinite': True, 'number': 0}, math.inf),
        ({'set': False, 'infinite': False, 'number': 0}, None),
        ({'set': False, 'infinite': False, 'number': 0, 'unit': 's'}, None),
    ],
)
def test_a_number_is_read_as_plain_and_as_object(value, expected):
    assert slurm_forms.optional_number(value) == expected
    if expected == 3.0:
        assert slurm_forms.number({'a': value}, 'a') == expected
    else:
        with pytest.raises(ValueError, match=r'a is (not set|infinite)'):
            slurm_forms.number({'a': value}, 'a')


@pytest.mark.parametrize(
    'value',
    [
        *({}, [], -1, True, 'x', math.inf),
        {'set': True, 'infinite': False},
        {'infinite': 0, 'set': 1},
        {'set': True, 'infinite': False, 'number': -1},
    ],
)
def test_value_that_is_no_number_is_refused(value):
    with pytest.raises(exception.UNREADABLE):
        slurm_forms.optional_number(value)


def test_a_job_in_no_state_or_in_two_is_set_aside():
    for states in ([], ['NEW'], ['PENDING', 'RUNNING']):
        odd = slurm_written.job(44, JOBS[5]) | {'job_state': states}
        (fault,) = seen(44, jobs=[odd]).faults
        assert 'job 6: its entry cannot be read: ValueError: job_state' in (
            fault
        )


OFFERED = {
    '22.05': ({36, 37, 38}, 38),
    '23.02': ({37, 38, 39}, 39),
    '23.11': ({39, 40}, 40),
    '24.05': ({39, 40, 41}, 41),
    '24.11': ({40, 41, 42}, 42),
    '25.05': ({40, 41, 42, 43}, 43),
    '25.11': ({41, 42, 43, 44}, 44),
    '26.05': ({42, 43, 44, 45}, 44),
    'of a later time': ({45, 46, 47}, 45),
}


@pytest.mark.parametrize(('offered', 'expected'), OFFERED.values())
def test_the_best_form_of_each_slurm_is_chosen(offered, expected):
    assert slurm_forms.choose_form(offered) == expected
    listed = '\n'.join(
        f'scontrol: data_parser/v0.0.{form}' for form in offered
    )
    text = f'scontrol: Possible data_parser plugins:\n{listed}\n'
    assert slurm_forms.form_numbers_of_plugins(text) == offered
    paths = {f'/slurm/v0.0.{form}/nodes/': {} for form in offered}
    paths |= {'/slurmdb/v0.0.99/jobs/': {}, '/slurm/v0.0.98/diag/': {}}
    assert (
        slurm_forms.form_numbers_of_paths(json.dumps({'paths': paths}))
        == offered
    )


@pytest.mark.parametrize(
    ('offered', 'named'), [((), 'none'), ((47, 46), 'v0.0.46, v0.0.47')]
)
def test_a_slurm_of_unknown_forms_is_named_with_them(offered, named):
    with pytest.raises(
        exception.BatchUnreadable, match=f'it offers {named}, and known'
    ):
        slurm_forms.choose_form(offered)


@pytest.mark.parametrize('text', ['', '[]', '{"paths": 7}', '{}'])
def test_paths_that_are_no_list_are_named(text):
    with pytest.raises(exception.BatchUnreadable, match='no list of its'):
        slurm_forms.form_numbers_of_paths(text)
