# SPDX-License-Identifier: Apache-2.0

"""What batch systems say, some of it odd: areas of the campaign.

Users choose much of what entries say. Whatever one entry says, a host in use
beside it is told as in use, and a job that waits beside it wants room.
"""

import contextlib
import http.client
import json
import math
from unittest import mock

from nova_fairness import exception
from nova_fairness.batch import condor as condor_module
from nova_fairness.batch import lsf as lsf_module
from nova_fairness.batch import slurm_json
from nova_fairness.batch import slurmrestd as slurmrestd_module
from tests.fixtures import slurm_written
from tests.fuzz import odd
from tests.unit.batch import test_from_manuals

GOOD = 'good'
NOW = 1000.0


def judge(seen, waits):
    """What must hold of anything that was read.

    :param waits: name of the job that waits.
    """
    place = seen.places[GOOD]
    assert sum(each.cores for each in place.work) >= 1
    assert waits in [each.name for each in seen.wants]
    told = [*seen.places, *seen.unclear, *seen.faults]
    for each in seen.places.values():
        told += [each.reason, *(work.name for work in each.work)]
        for work in each.work:
            assert 0 <= work.cores < math.inf
            assert work.gone_at is None or math.isfinite(work.gone_at)
    for want in seen.wants:
        told.append(want.name)
        assert 0 < want.cores < math.inf
        assert math.isfinite(want.since)
    for text in told:
        assert isinstance(text, str)
        text.encode()


def amid(rng, entries, *good):
    """Odd entries with good ones at any place, if they are a list still."""
    found = odd.changed(rng, entries)
    if not isinstance(found, list):
        return [*entries, *good]
    for each in good:
        found.insert(rng.randrange(len(found) + 1), each)
    return found


def seen_or_refused(rng, read, waits, *texts):
    """Read texts, some of them cut; what is refused is refused whole."""
    if rng.random() < 0.1:
        with contextlib.suppress(exception.BatchError):
            read(*(odd.cut(rng, text) for text in texts))
        return
    judge(read(*texts), waits)


def _of_slurm(rng):
    form = rng.choice(slurm_written.FORMS)
    tasks = rng.choice(('', '1-5,7,...', '1-9%2'))
    runs = slurm_written.Job(
        8, 'RUNNING', ended=99, limit=1, where=(('n1', 1),)
    )
    nodes = [slurm_written.Node(f'n{n}') for n in range(3)]
    jobs = [slurm_written.Job(7, tasks=tasks), runs]
    busy = slurm_written.Node(GOOD, 'ALLOCATED', used=4)
    waits = slurm_written.Job(901)
    return (
        slurm_written.answer(form, 'nodes', _amid(rng, form, nodes, busy)),
        slurm_written.answer(form, 'jobs', _amid(rng, form, jobs, waits)),
    )


def _amid(rng, form, entries, good):
    kind = isinstance(good, slurm_written.Job)
    write = slurm_written.job if kind else slurm_written.node
    return amid(
        rng, [write(form, each) for each in entries], write(form, good)
    )


def slurm(rng):
    """What Slurm's commands say."""
    seen_or_refused(
        rng,
        lambda *texts: slurm_json.parse_snapshot(*texts, NOW),
        '901',
        *_of_slurm(rng),
    )


def lsf(rng):
    """What LSF says."""
    host, job = test_from_manuals.host, test_from_manuals.bjob
    hosts = [host(HOST_NAME=f'n{n}') for n in range(3)]
    lies = rng.choice(('2*n1:n2', '9' * 400 + '*n1', '*:n1*2', '-', '0*n1'))
    jobs = [job(), job(JOBID='8', STAT='RUN', EXEC_HOST=lies)]
    runs = job(JOBID='900', STAT='RUN', EXEC_HOST=f'2*{GOOD}')
    comments = test_from_manuals.COMMENTS
    if rng.random() < 0.5:
        comments = odd.cut(rng, comments)
    records = test_from_manuals.records
    seen_or_refused(
        rng,
        lambda hosts, jobs: lsf_module.parse_snapshot(
            hosts, comments, jobs, NOW
        ),
        '901',
        records('bhosts', amid(rng, hosts, host(HOST_NAME=GOOD, NJOBS='2'))),
        records('bjobs', amid(rng, jobs, runs, job(JOBID='901'))),
    )


def condor(rng):
    """What HTCondor says."""
    slot, job = test_from_manuals.slot, test_from_manuals.in_queue
    slots = [
        slot(Machine='n1', State='Claimed', JobId='7.1'),
        slot(Machine='n2', **test_from_manuals.DRAINS),
    ]
    jobs = [job(), job(AllowedJobDuration=9, JobCurrentStartDate=5)]
    busy = slot(Machine=GOOD, State='Claimed', JobId='900.0')
    seen_or_refused(
        rng,
        condor_module.parse_snapshot,
        '901.0',
        json.dumps(amid(rng, slots, busy)),
        json.dumps(amid(rng, jobs, job(ClusterId=901, ProcId=0))),
    )


_FAILS = (
    OSError, ConnectionResetError, TimeoutError, http.client.HTTPException,
    http.client.IncompleteRead, http.client.BadStatusLine,
)  # fmt: skip
URLS = (
    '', 'x', 'http://', 'http://[::1', 'http://127.0.0.1:x', 'unix:',
    'http://127.0.0.1:99999', 'http://127.0.0.1:-1', 'unix:/none', '//x:1',
    'unix:/' + 'x' * 200, 'ftp://127.0.0.1', 'http://127.0.0.1:1\n', 'http:1',
)  # fmt: skip


def slurmrestd(rng):
    """What slurmrestd answers, and where it is said to be."""
    texts = ['{"paths": {"/slurm/v0.0.38/nodes/": {}}}', *_of_slurm(rng)]
    is_odd = rng.random() < 0.3
    answers, url = mock.Mock(), f'http://127.0.0.1:{rng.randrange(1, 9)}'
    given = [(200, text.encode()) for text in texts]
    if is_odd:
        place = rng.randrange(3)
        given[place] = (
            rng.choice((200, 204, 301, 401, 404, 500, 999)),
            odd.cut(rng, texts[place]).encode('utf-8', 'surrogatepass'),
        )
    answers.getresponse.side_effect = [
        mock.Mock(status=status, **{'read.return_value': text})
        for status, text in given
    ]
    if is_odd and rng.random() < 0.3:
        failed = rng.choice(_FAILS)('')
        rng.choice((answers.request, answers.getresponse)).side_effect = failed
    environ = {slurmrestd_module.URL: url, 'SLURM_JWT': rng.choice(('', 'a'))}
    system = slurmrestd_module.SlurmRest(1.0)
    with (
        mock.patch.dict('os.environ', environ),
        mock.patch.object(
            slurmrestd_module, '_connection', return_value=answers
        ),
    ):
        if is_odd:
            with contextlib.suppress(exception.BatchError):
                system.read_hosts()
        else:
            judge(system.read_hosts(), '901')
    environ = {
        slurmrestd_module.URL: rng.choice(URLS),
        'SLURM_JWT': rng.choice(('', 'a', 'a\nb', 'é', '\u2028')),
    }
    with mock.patch.dict('os.environ', environ):
        try:
            system.read_hosts()
        except exception.BatchAway:
            return
        raise AssertionError('it is somewhere')
