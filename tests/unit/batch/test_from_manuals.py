# SPDX-License-Identifier: Apache-2.0

"""HTCondor and LSF, whose fake commands answer as their manuals say."""

import json

import pytest

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.batch import condor
from nova_fairness.batch import lsf
from nova_fairness.model import border
from nova_fairness.testing import batch_contract
from tests.fixtures import fake_batch_commands

MARKED = f'{border.MARK}: it goes'
NOW = 10_000.0


class FromManual(batch_contract.BatchContract):
    """Everything goes through the commands of a path."""

    name: str

    @pytest.fixture(autouse=True)
    def _cluster(self, tmp_path, monkeypatch):
        self.cluster = fake_batch_commands.install(tmp_path, monkeypatch)

    def make(self):
        return plugins.load_batch(self.name)

    def submit(self, host, minutes):
        name = self.cluster.submit(host, minutes)
        return f'{name}.0' if self.name == 'condor' else name

    def end(self, job):
        self.cluster.end(job.partition('.')[0])

    def close_by_hand(self, host, reason):
        self.cluster.close(host, reason)


class TestCondor(FromManual):
    name = 'condor'


class TestLsf(FromManual):
    name = 'lsf'


def test_the_description_of_lsf_says_that_it_was_never_run():
    assert 'never run on a real one' in plugins.load_batch('lsf').description


@pytest.mark.parametrize('name', ['condor', 'lsf'])
def test_a_batch_system_without_its_commands_is_unavailable(name, monkeypatch):
    monkeypatch.setenv('PATH', '/nowhere')
    with pytest.raises(exception.BatchAway, match='cannot run'):
        plugins.load_batch(name).read_hosts()


@pytest.mark.parametrize('name', ['condor', 'lsf'])
def test_a_refusing_batch_command_raises_its_message(
    name, tmp_path, monkeypatch
):
    fake_batch_commands.install(tmp_path, monkeypatch)
    batch = plugins.load_batch(name)
    for order in (
        lambda: batch.drain('x', MARKED),
        lambda: batch.undrain('x'),
    ):
        with pytest.raises(exception.BatchRefused, match='ended with'):
            order()


def slot(**changes):
    usual = {
        'Machine': 'n1',
        'State': 'Unclaimed',
        'Activity': 'Idle',
        'Cpus': 4,
    }
    return usual | changes


def in_queue(**changes):
    usual = {
        'ClusterId': 7,
        'ProcId': 1,
        'GlobalJobId': 'a#7.1#50',
        'JobStatus': 1,
        'JobUniverse': 5,
        'QDate': 50,
    }
    return usual | changes


def of_condor(slots, jobs=()):
    return condor.parse_snapshot(json.dumps([*slots]), json.dumps([*jobs]))


DRAINS = {'Draining': True, 'DrainReason': MARKED}


@pytest.mark.parametrize(
    ('slots', 'expected'),
    [
        ([slot()], (True, True, False)),
        ([slot(State='Owner')], (False, True, False)),
        ([slot(State='Owner'), slot(State='Claimed')], (True, True, False)),
        ([slot(**DRAINS)], (False, True, True)),
        ([slot(**DRAINS, State='Drained')], (False, True, True)),
        ([slot(State='Claimed', **DRAINS)], (False, True, True)),
        ([slot(Draining=True, DrainReason='root')], (False, True, False)),
        ([slot(Draining=True)], (False, True, False)),
        ([slot(Offline=True)], (False, False, False)),
    ],
)
def test_slots_of_condor_name_the_closer_of_a_host(slots, expected):
    place = of_condor(slots).places['n1']
    assert (place.takes, place.up, place.ours) == expected


def test_a_claimed_slot_of_condor_never_counts_as_empty():
    place = of_condor([slot(State='Claimed'), slot(Cpus=0)]).places['n1']
    assert place.work == (border.RunningWork('unknown', 4.0),)


@pytest.mark.parametrize(
    ('states', 'count'),
    [
        ([('Drained', 'Idle')], 0),
        ([('Drained', 'Retiring')], 1),
        # The collector does not know yet that this slot is drained.
        ([('Drained', 'Idle'), ('Unclaimed', 'Idle')], 1),
        ([('Unclaimed', 'Idle')], 1),
    ],
)
def test_a_drained_host_of_condor_is_empty_when_all_slots_are(states, count):
    slots = [
        slot(State=state, Activity=activity, **DRAINS)
        for state, activity in states
    ]
    unknown = border.RunningWork('unknown', 0.0)
    assert of_condor(slots).places['n1'].work == (unknown,) * count


def test_a_drain_of_condor_ends_when_its_collector_knows_it(
    tmp_path, monkeypatch
):
    fake_batch_commands.install(tmp_path, monkeypatch)
    monkeypatch.setattr(condor, '_LOOK_S', 0.0)
    batch = plugins.load_batch('condor')
    late = [batch.read_hosts()] * 3
    read = batch.read_hosts
    batch.read_hosts = lambda: late.pop() if late else read()
    batch.close('n1', 'it goes')
    assert not late
    assert not read().places['n1'].takes


def test_a_collector_of_condor_that_never_learns_of_a_drain_is_away(
    tmp_path, monkeypatch
):
    fake_batch_commands.install(tmp_path, monkeypatch)
    batch = plugins.load_batch('condor')
    late = batch.read_hosts()
    batch._timeout_s = 0.0
    monkeypatch.setattr(condor.commands, 'output', lambda *_: '')
    batch.read_hosts = lambda: late
    with pytest.raises(exception.BatchAway, match='host n1: it was drained'):
        batch.close('n1', 'it goes')


def test_a_job_of_condor_without_cpus_keeps_its_host_from_being_empty():
    claimed = slot(State='Claimed', Cpus=0, JobId='7.1')
    place = of_condor([slot(), claimed]).places['n1']
    assert place.work == (border.RunningWork('7.1', 0.0),)


def test_queues_of_condor_without_jobs_are_empty():
    found = condor.parse_snapshot(
        json.dumps([slot()]), 'All queues are empty\n'
    )
    assert found.places['n1'].takes
    assert not found.wants


@pytest.mark.parametrize(
    ('changes', 'wants'),
    [
        ({}, [(1.0, 50.0)]),
        ({'RequestCpus': 8, 'EnteredCurrentStatus': 60}, [(8.0, 60.0)]),
        ({'JobStatus': 2}, []),
        # On hold, and what runs where it was submitted.
        ({'JobStatus': 5}, []),
        ({'JobUniverse': 12}, []),
    ],
)
def test_jobs_of_condor_that_are_idle_want_slots(changes, wants):
    found = of_condor([], [in_queue(**changes)]).wants
    assert [(each.cores, each.since) for each in found] == wants
    assert all(each.name == '7.1' for each in found)


def test_the_allowed_duration_of_a_condor_job_is_its_end():
    claimed = slot(State='Claimed', JobId='7.1', GlobalJobId='a#7.1#50')
    runs = in_queue(JobStatus=2, JobCurrentStartDate=100)
    (work,) = of_condor([claimed], [runs]).places['n1'].work
    assert work.gone_at is None
    limited = runs | {'AllowedJobDuration': 60}
    (work,) = of_condor([claimed], [limited]).places['n1'].work
    assert work.gone_at == 160.0


def test_jobs_of_two_condor_queues_with_one_number_have_their_own_ends():
    claimed = slot(State='Claimed', JobId='7.1', GlobalJobId='b#7.1#50')
    runs = in_queue(
        JobStatus=2, JobCurrentStartDate=100, AllowedJobDuration=60
    )
    longer = runs | {'GlobalJobId': 'b#7.1#50', 'AllowedJobDuration': 600}
    for jobs in ([runs, longer], [longer, runs]):
        (work,) = of_condor([claimed], jobs).places['n1'].work
        assert work.gone_at == 700.0


@pytest.mark.parametrize(
    ('slots', 'jobs', 'message'),
    [
        ('{"ads": 7}', '', 'condor_status -json wrote no lists'),
        ('[]', '<xml/>', 'condor_q -json wrote no lists'),
        ('[7]', '', 'slot without a name: its entry cannot be read'),
        ('[{"Name": "n1"}]', '', "it has no 'Machine'"),
        ('[{"Machine": "n1"}]', '', "it has no 'State'"),
    ],
)
def test_output_of_condor_in_an_unknown_form_is_refused(slots, jobs, message):
    with pytest.raises(exception.BatchUnreadable, match=message):
        condor.parse_snapshot(slots, jobs)


def host(**changes):
    usual = {'HOST_NAME': 'n1', 'STATUS': 'ok', 'MAX': '4', 'NJOBS': '0'}
    return usual | changes


def bjob(**changes):
    usual = {
        'JOBID': '7',
        'JOBINDEX': '0',
        'STAT': 'PEND',
        'EXEC_HOST': '-',
        'NREQ_SLOT': '2',
        'PEND_TIME': '00:01:40',
        'RUN_TIME': '00:00:00',
        'RUNTIMELIMIT': '01:00:00',
        'PEND_REASON': 'Job slots on hosts are full: 2 hosts',
    }
    return usual | changes


def records(command, listed):
    return json.dumps({'COMMAND': command, 'RECORDS': [*listed]})


def of_lsf(hosts, jobs=(), comments=''):
    return lsf.parse_snapshot(
        records('bhosts', hosts), comments, records('bjobs', jobs), NOW
    )


COMMENTS = f"""\
HOST  n0
STATUS           CPUF  JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV
closed_Adm      60.00     -      4      0      0      0      0      0
 ADMIN ACTION COMMENT: "bad disk"

HOST  n1
STATUS           CPUF  JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV
closed_Adm      60.00     -      4      0      0      0      0      0
 ADMIN ACTION COMMENT: "{MARKED}"
"""


@pytest.mark.parametrize(
    ('status', 'comments', 'expected'),
    [
        ('ok', '', (True, True, False)),
        # There is no room, and it is open.
        ('closed_Full', '', (True, True, False)),
        ('closed_Excl', COMMENTS, (True, True, False)),
        ('closed_Adm', COMMENTS, (False, True, True)),
        ('closed_Adm', '', (False, True, False)),
        ('closed_Adm', COMMENTS.replace(MARKED, 'x'), (False, True, False)),
        ('closed_Lock', COMMENTS, (False, True, False)),
        ('closed', COMMENTS, (False, True, False)),
        ('unavail', COMMENTS, (False, False, False)),
        ('unreach', '', (False, False, False)),
    ],
)
def test_the_status_in_lsf_names_the_closer_of_a_host(
    status, comments, expected
):
    place = of_lsf([host(STATUS=status)], comments=comments).places['n1']
    assert (place.takes, place.up, place.ours) == expected


def test_a_job_of_lsf_is_listed_on_each_of_its_hosts():
    runs = bjob(
        STAT='RUN', JOBINDEX='3', EXEC_HOST='2*n1:n2', RUN_TIME='00:10:00'
    )
    places = of_lsf([host(), host(HOST_NAME='n2')], [runs]).places
    told = {name: place.work for name, place in places.items()}
    end = NOW + 3000
    assert told == {
        'n1': (border.RunningWork('7[3]', 2.0, end),),
        'n2': (border.RunningWork('7[3]', 1.0, end),),
    }
    (work,) = (
        of_lsf([host()], [runs | {'RUNTIMELIMIT': '-'}]).places['n1'].work
    )
    assert work.gone_at is None


def test_a_busy_host_of_lsf_never_counts_as_empty():
    place = of_lsf([host(NJOBS='3')]).places['n1']
    assert place.work == (border.RunningWork('unknown', 3.0),)


@pytest.mark.parametrize(
    ('reason', 'count'),
    [
        ('Job slots on hosts are full: 2 hosts', 1),
        ('Closed by LSF administrator: 2 hosts', 1),
        ('Job dependency condition not satisfied', 0),
        ('User has reached the per-user job slot limit', 0),
        ('The queue has been closed by its owner', 0),
    ],
)
def test_jobs_of_lsf_want_room_unless_something_else_is_in_the_way(
    reason, count
):
    wants = of_lsf([host()], [bjob(PEND_REASON=reason)]).wants
    assert wants == (border.PendingWork('7', 2.0, NOW - 100),)[:count]


@pytest.mark.parametrize('state', ['PSUSP', 'DONE', 'EXIT'])
def test_a_held_or_ended_lsf_job_is_neither_work_nor_want(state):
    found = of_lsf([host()], [bjob(STAT=state, EXEC_HOST='n1')])
    assert found.places['n1'].work == found.wants == ()


HOSTS, JOBS = records('bhosts', [host()]), records('bjobs', [bjob()])


@pytest.mark.parametrize(
    ('hosts', 'jobs', 'message'),
    [
        ('', JOBS, 'bhosts -json wrote no JSON with COMMAND'),
        (HOSTS, '[]', 'bjobs -json wrote no JSON with COMMAND'),
        (JOBS, JOBS, 'bhosts -json wrote other JSON'),
        ('{"COMMAND": "bhosts", "RECORDS": 7}', JOBS, 'wrote other JSON'),
        (records('bhosts', [{}]), JOBS, "it has no 'HOST_NAME'"),
    ],
)
def test_output_of_lsf_in_an_unknown_form_is_refused(hosts, jobs, message):
    with pytest.raises(exception.BatchUnreadable, match=message):
        lsf.parse_snapshot(hosts, '', jobs, NOW)


ODD = (None, [], {}, '', 'x', -1, float('nan'), True, '\ud800', [{}])


@pytest.mark.parametrize('key', sorted(in_queue(RequestCpus=1)))
@pytest.mark.parametrize('odd', ODD, ids=repr)
def test_an_invalid_job_of_condor_keeps_no_other_from_being_read(key, odd):
    good = in_queue(ProcId=2)
    found = of_condor([slot()], [in_queue(RequestCpus=1) | {key: odd}, good])
    assert '7.2' in {want.name for want in found.wants}
    assert found.places['n1'].takes


IN_USE = slot(Machine='n2', State='Claimed')


@pytest.mark.parametrize('key', ['State', 'Cpus', 'Machine'])
@pytest.mark.parametrize('odd', ODD, ids=repr)
def test_a_malformed_slot_of_condor_never_counts_as_empty(key, odd):
    claimed = slot(State='Claimed', JobId='7.1', **DRAINS)
    free = slot(State='Drained', **DRAINS)
    found = of_condor([claimed | {key: odd}, free, IN_USE])
    assert found.places['n2'].takes
    place = found.places.get('n1')
    is_renamed = (key, odd) == ('Machine', 'x')
    assert is_renamed or (place.work if place else found.is_unclear('n1'))


@pytest.mark.parametrize('key', sorted(bjob()))
@pytest.mark.parametrize('odd', ODD, ids=repr)
def test_a_malformed_job_of_lsf_does_not_hide_others(key, odd):
    good = bjob(JOBID='8')
    found = of_lsf([host()], [bjob(**{key: odd}), good, 7, {'JOBID': '9'}])
    assert '8' in {want.name for want in found.wants}
    assert found.places['n1'].takes
    assert len(found.faults) >= 2


@pytest.mark.parametrize('busy', ['0', '2'])
def test_a_host_that_lsf_lists_twice_does_not_count_as_empty(busy):
    other = '2' if busy == '0' else '0'
    twice = [host(NJOBS=busy), host(NJOBS=other)]
    found = of_lsf([*twice, host(HOST_NAME='n2')])
    assert 'n1' not in found.places
    assert found.is_unclear('n1')
    assert 'host n1: it is listed again' in found.faults[0]
    assert found.places['n2'].takes


@pytest.mark.parametrize('key', ['STATUS', 'NJOBS', 'HOST_NAME'])
@pytest.mark.parametrize('odd', [None, [], '', -1, 'x', True], ids=repr)
def test_a_malformed_host_of_lsf_never_counts_as_empty(key, odd):
    busy = host(NJOBS='3') | {key: odd}
    found = of_lsf([busy, host(HOST_NAME='n2')])
    assert found.places['n2'].takes
    place = found.places.get('x' if (key, odd) == ('HOST_NAME', 'x') else 'n1')
    assert place.work if place else found.is_unclear('n1')


@pytest.mark.parametrize(
    'hosts', ['9' * 400 + '*n1', '2*n1:\ud800', '2*n1:' + '9' * 400 + '*n2']
)
def test_a_job_of_lsf_on_no_known_host_is_set_aside(hosts):
    runs = bjob(JOBID='8', STAT='RUN', EXEC_HOST=hosts)
    seen = of_lsf([host(NJOBS='2')], [runs, bjob()])
    assert [each.cores for each in seen.places['n1'].work] == [2.0]
    assert [each.name for each in seen.wants] == ['7']
    assert 'job 8' in seen.faults[0]


def test_an_undecodable_reason_is_shown_with_a_replacement_mark():
    drained = slot(
        Draining=True, DrainReason='bad \ud800 disk', JobId='\ud800'
    )
    assert of_condor([drained]).places['n1'].reason == 'bad ? disk'
