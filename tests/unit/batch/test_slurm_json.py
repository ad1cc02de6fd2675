# SPDX-License-Identifier: Apache-2.0

"""Cases that a real Slurm, see tests/integration/batch, seldom comes to."""

import json

import pytest

from nova_fairness import exception
from nova_fairness.batch import slurm_json

FORM = 'openapi/v0.0.38'


def slurm_json_text(key, entries, form=FORM, errors=()):
    meta = {'plugin': {'type': form, 'name': 'Slurm OpenAPI'}}
    return json.dumps({'meta': meta, 'errors': [*errors], key: entries})


def node(**changes):
    usual = {
        'name': 'n1',
        'state': 'idle',
        'state_flags': [],
        'cpus': 4,
        'alloc_cpus': 0,
        'reason': '',
        'reason_changed_at': 100,
    }
    return {**usual, **changes}


def job(**changes):
    usual = {
        'job_id': 7,
        'job_state': 'PENDING',
        'state_reason': 'Resources',
        'cpus': 2,
        'node_count': 1,
        'shared': None,
        'array_task_string': '',
        'submit_time': 5,
        'eligible_time': 6,
        'end_time': 0,
        'time_limit': 10,
        'job_resources': None,
    }
    return {**usual, **changes}


def snapshot_of(nodes=(), jobs=(), now=1000.0):
    return slurm_json.parse_snapshot(
        slurm_json_text('nodes', [*nodes]),
        slurm_json_text('jobs', [*jobs]),
        now,
    )


def place(**changes):
    return snapshot_of([node(**changes)]).places['n1']


MARKED = 'nova-fairness: it goes'


@pytest.mark.parametrize(
    ('state', 'flags', 'reason', 'expected'),
    [
        ('idle', [], '', (True, True, False)),
        ('mixed', [], '', (True, True, False)),
        ('allocated', ['COMPLETING'], '', (True, True, False)),
        ('idle', ['DRAIN'], MARKED, (False, True, True)),
        ('idle', ['DRAIN'], 'bad disk', (False, True, False)),
        ('idle', ['DRAIN'], '', (False, True, False)),
        ('idle', ['MAINTENANCE'], MARKED, (False, True, False)),
        ('idle', ['DRAIN', 'NOT_RESPONDING'], MARKED, (False, False, True)),
        ('down', ['DRAIN'], MARKED, (False, False, True)),
        ('down', [], 'Not responding', (False, False, False)),
        ('idle', ['POWERED_DOWN'], '', (False, False, False)),
        ('unknown', [], '', (False, False, False)),
        # An old reason on a node that was opened since.
        ('idle', [], MARKED, (True, True, False)),
    ],
)
def test_node_states_give_open_up_and_drained_by_us(
    state, flags, reason, expected
):
    found = place(state=state, state_flags=flags, reason=reason)
    assert (found.takes, found.up, found.ours) == expected


@pytest.mark.parametrize(
    'changes',
    [{'alloc_cpus': 2}, {'state_flags': ['COMPLETING']}],
)
def test_a_busy_node_never_counts_as_empty(changes):
    (work,) = place(**changes).work
    assert (work.name, work.gone_at) == ('unknown', None)


@pytest.mark.parametrize(
    ('now', 'reason', 'told'),
    [
        (100, MARKED, [('what Slurm may not have saved', 110.0)]),
        (109, MARKED, [('what Slurm may not have saved', 110.0)]),
        (110, MARKED, []),
        # What another hand closed is not handed over anyway.
        (100, 'bad disk', []),
    ],
)
def test_a_node_is_empty_only_after_slurm_saved_its_drain(now, reason, told):
    """A slurmctld that is killed before has it open when it is back."""
    closed = node(state_flags=['DRAIN'], reason=reason)
    work = snapshot_of([closed], now=now).places['n1'].work
    assert [(each.name, each.gone_at) for each in work] == told
    busy = closed | {'alloc_cpus': 2}
    (work,) = snapshot_of([busy], now=now).places['n1'].work
    assert work.name == 'unknown'


ON_N1 = {
    'allocated_nodes': [
        {'nodename': 'n1', 'sockets': {'0': {'cores': {'0': 'allocated'}}}}
    ]
}


@pytest.mark.parametrize(
    ('job_state', 'ended_at', 'saved_at'),
    [
        ('COMPLETED', 200, 210.0),
        ('TIMEOUT', 200, 210.0),
        # Before it was closed, which is not saved yet.
        ('COMPLETED', 90, 110.0),
    ],
)
def test_a_node_is_empty_only_after_slurm_saved_its_job_end(
    job_state, ended_at, saved_at
):
    """A slurmctld that is killed before has it run when it is back."""
    over = job(job_state=job_state, end_time=ended_at, job_resources=ON_N1)
    nodes = [
        node(state_flags=['DRAIN'], reason=MARKED),
        node(name='n2', state_flags=['DRAIN'], reason=MARKED),
        node(name='n3'),
    ]
    late = snapshot_of(
        nodes, [job(), over, over | {'end_time': 20}], saved_at - 1
    )
    (work,) = late.places['n1'].work
    assert work.name == 'what Slurm may not have saved'
    assert work.gone_at == saved_at
    assert bool(late.places['n2'].work) is (saved_at == 110)
    assert late.places['n3'].work == ()
    assert snapshot_of(nodes, [over], saved_at).places['n1'].work == ()
    # An open node is not left: nobody waits for it.
    assert snapshot_of([node()], [over], saved_at - 1).places['n1'].work == ()


@pytest.mark.parametrize(
    'state', ['COMPLETED', 'CANCELLED', 'FAILED', 'TIMEOUT']
)
def test_an_ended_slurm_job_is_neither_work_nor_want(state):
    found = snapshot_of([node()], [job(job_state=state)])
    assert found.places['n1'].work == found.wants == ()


@pytest.mark.parametrize(
    ('text', 'count'),
    [('', 1), ('4', 1), ('1-3', 3), ('0-9:4', 3), ('1-9,20%4', 4)],
)
def test_tasks_of_an_array_are_counted(text, count):
    found = snapshot_of([node()], [job(array_task_string=text)])
    assert len(found.wants) == count
    assert len({want.name for want in found.wants}) == count


def test_the_wait_of_a_job_begins_when_it_becomes_eligible():
    assert snapshot_of([], [job()]).wants[0].since == 6
    assert snapshot_of([], [job(eligible_time=0)]).wants[0].since == 5


NODES, JOBS = (
    slurm_json_text('nodes', [node()]),
    slurm_json_text('jobs', [job()]),
)
NEWER = slurm_json_text('nodes', [node()], form='data_parser/v0.0.46')


@pytest.mark.parametrize(
    ('nodes', 'jobs', 'message'),
    [
        (NEWER, JOBS, 'v0.0.46, and known are v0.0.38 to v0.0.45, of Slurm'),
        (
            NODES,
            slurm_json_text('jobs', [], 'openapi/v0.0.37'),
            'the form openapi/v0',
        ),
        (
            NODES,
            slurm_json_text('jobs', [], 'v0.0.45x'),
            'the form v0.0.45x, and',
        ),
        ('', JOBS, 'Slurm wrote nodes in no JSON'),
        (NODES, '[]', 'Slurm wrote jobs in no JSON that names its form'),
        (NODES, '{"meta": null}', 'names its form'),
        (NODES, '{"meta": {"plugins": 7}}', 'names its form'),
        (slurm_json_text('other', []), JOBS, 'no list of nodes'),
        (slurm_json_text('nodes', [], errors=['bad']), JOBS, "errors .'bad'"),
        (
            slurm_json_text('nodes', [{'name': 'n1'}]),
            JOBS,
            "n1.* it has no 'state'",
        ),
        (
            slurm_json_text('nodes', [node(alloc_cpus=[1])]),
            JOBS,
            'n1.*TypeError',
        ),
        (slurm_json_text('nodes', [7]), JOBS, 'v0.0.38 and is not'),
        (slurm_json_text('nodes', [node(state='')]), JOBS, 'and is not'),
    ],
)
def test_output_of_slurm_in_an_unknown_form_is_refused(nodes, jobs, message):
    with pytest.raises(exception.BatchUnreadable, match=message):
        slurm_json.parse_snapshot(nodes, jobs, 0.0)


ODD = (None, [], {}, '', 'x', -1, 10**400, float('nan'), True, '\ud800', [{}])


@pytest.mark.parametrize('key', sorted(job()))
@pytest.mark.parametrize('odd', ODD, ids=repr)
def test_an_invalid_job_keeps_no_other_from_being_read(key, odd):
    """Users choose what entries of jobs say."""
    good = job(job_id=8)
    found = snapshot_of([node()], [job(**{key: odd}), good])
    assert [want for want in found.wants if want.name == '8']
    assert found.places['n1'].takes
    missing = job()
    del missing[key]
    found = snapshot_of([node()], [missing, good, 7, None])
    assert [want for want in found.wants if want.name == '8']
    assert any('without a name' in each for each in found.faults)


@pytest.mark.parametrize('key', sorted(node()))
@pytest.mark.parametrize('odd', ODD, ids=repr)
def test_an_invalid_node_never_counts_as_empty(key, odd):
    closed = node(state_flags=['DRAIN'], reason=MARKED, alloc_cpus=2)
    found = snapshot_of([closed | {key: odd}, node(name='n2')], now=1e9)
    assert found.places['n2'].takes
    place = found.places.get('x' if (key, odd) == ('name', 'x') else 'n1')
    if place is None:
        assert found.is_unclear('n1')
        assert found.faults
    else:
        assert place.work


@pytest.mark.parametrize('busy', [0, 2])
def test_a_node_listed_twice_does_not_count_as_empty(busy):
    twice = [node(alloc_cpus=busy), node(alloc_cpus=2 - busy)]
    found = snapshot_of([*twice, node(name='n2')])
    assert 'n1' not in found.places
    assert found.is_unclear('n1')
    assert 'node n1: it is listed again' in found.faults[0]
    assert found.places['n2'].takes


def test_a_node_listed_twice_identically_counts_once():
    found = snapshot_of([node(), node()])
    assert found.places['n1'].takes
    assert not found.faults


def test_a_job_has_a_cpu_on_each_of_its_nodes():
    found = snapshot_of([node()], [job(cpus=1, node_count=10**12)])
    assert [(w.cores, w.part) for w in found.wants] == [(1e12, 1.0)]


def test_a_running_job_that_cannot_be_read_leaves_its_node_busy():
    closed = node(state_flags=['DRAIN'], reason=MARKED, alloc_cpus=4)
    half = job(job_state='RUNNING', job_resources=ON_N1, cpus=2)
    odd = half | {'job_id': 8, 'job_resources': 'odd'}
    work = snapshot_of([closed], [half, odd], 1e9).places['n1'].work
    assert [(each.name, each.cores) for each in work] == [
        ('7', 2.0),
        ('unknown', 2.0),
    ]


@pytest.mark.parametrize(
    ('text', 'count', 'is_told'),
    [
        ('3,23,27,30,...', 4, True),
        ('3,23,27,30,4...', 4, True),
        ('3,23,27,30,...%2', 2, False),
        ('...', 1, True),
        ('1-999999999', slurm_json.MOST_TASKS, False),
    ],
)
def test_a_truncated_task_list_of_an_array_counts_its_entries(
    text, count, is_told
):
    found = snapshot_of([node()], [job(array_task_string=text)])
    assert len(found.wants) == count
    assert any('SLURM_BITSTR_LEN' in each for each in found.faults) is is_told


def test_array_tasks_are_expanded_up_to_a_limit(monkeypatch):
    made = []
    real = slurm_json.dataclasses.replace

    def counted(*given, **more):
        made.append(more)
        return real(*given, **more)

    monkeypatch.setattr(slurm_json.dataclasses, 'replace', counted)
    monkeypatch.setattr(slurm_json, 'MOST_WANTS', 12_000)
    arrays = [
        job(job_id=n, array_task_string='1-999999999') for n in range(1, 50)
    ]
    found = snapshot_of([node()], arrays)
    assert len(found.wants) == len(made) == 12_000
    assert found.wants[0].name == '1'
    assert found.wants[-1].name == '2+1999'


def test_a_job_of_more_than_any_number_of_cpus_wants_nothing():
    odd = job(cpus=1e308, node_count=1e308, shared='none')
    found = snapshot_of([node()], [odd])
    assert found.wants == ()
    assert found.faults


def test_an_undecodable_reason_is_shown_with_a_replacement_mark():
    assert place(state='down', reason='bad \ud800 disk').reason == 'bad ? disk'
