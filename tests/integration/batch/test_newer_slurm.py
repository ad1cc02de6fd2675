# SPDX-License-Identifier: Apache-2.0

"""A Slurm that is newer than this machine's, as Debian 13 has it (24.11).

Debian 13 is downloaded into a directory. ``NOVA_FAIRNESS_SLURM_ROOT`` names
another one, in which there is another Slurm.
"""

import os
import pathlib
import tempfile

import pytest

from nova_fairness import plugins
from nova_fairness.batch import slurm_forms
from nova_fairness.batch import slurm_json
from tests.fixtures import debian_root
from tests.fixtures import patience
from tests.fixtures import slurm_cluster
from tests.integration.batch import test_slurm

pytestmark = [
    pytest.mark.slow,
    pytest.mark.beside,
    pytest.mark.timeout(1200),
]

PACKAGES = (
    *('slurmctld', 'slurmd', 'slurmrestd', 'slurm-client'),
    'slurm-wlm-basic-plugins',
)


@pytest.fixture(scope='module')
def root():
    """Directory of a Debian that has Slurm."""
    with debian_root.made(PACKAGES, 'NOVA_FAIRNESS_SLURM_ROOT') as made:
        yield made


@pytest.fixture(scope='module')
def running(root):
    with tempfile.TemporaryDirectory(prefix='slurm-') as place:
        top = pathlib.Path(place)
        top.chmod(0o755)
        enter = debian_root.entering(root, top)
        cluster = slurm_cluster.SlurmCluster(
            top, lambda command: (*enter, *command)
        )
        (top / 'cgroup.conf').write_text('CgroupPlugin=disabled\n')
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


@pytest.fixture(scope='module')
def programs(running, tmp_path_factory):
    """Directory of this Slurm's commands."""
    place = tmp_path_factory.mktemp('programs')
    names = 'scontrol', 'squeue', 'sinfo'
    debian_root.write_programs(place, running.within(()), names)
    return place


@pytest.fixture
def slurm(running, programs, monkeypatch):
    """A Slurm whose nodes are open and empty, before and after a test."""
    monkeypatch.setenv('PATH', f'{programs}:{os.environ["PATH"]}')
    monkeypatch.setenv('SLURM_CONF', str(running.conf))
    running.settle()
    yield running
    running.settle()


batch = test_slurm.batch


@pytest.fixture(scope='module')
def slurmrestd_url(running):
    """URL of a slurmrestd."""
    return running.start_rest('openapi/slurmctld')


class TestNewerSlurm(test_slurm.TestSlurm):
    """All that is asked of a batch system, by commands."""


class TestNewerSlurmRest(test_slurm.TestSlurmRest):
    """The same, looked at by slurmrestd."""


test_slurmrestd_agrees = test_slurm.test_slurmrestd_agrees_with_the_commands
test_a_job_on_several = (
    test_slurm.test_a_job_on_several_nodes_is_listed_on_each_node
)
test_when_a_job_is_gone = (
    test_slurm.test_the_latest_end_of_a_job_follows_from_its_time_limit
)
test_every_job_that_waits = (
    test_slurm.test_every_job_that_waits_for_room_is_listed
)
test_a_limit = test_slurm.test_a_job_that_waits_for_a_limit_is_no_demand
test_a_host_goes_to_the_cloud = (
    test_slurm.test_a_host_goes_to_the_cloud_when_its_job_has_ended
)


def test_each_json_form_of_slurm_24_11_is_read_alike(slurm, batch):
    job = slurm.submit('-N2', '-n3', '--time=60')
    ended = slurm.submit('-n1', '-w', 'node4', command='true')
    patience.wait_for_value(lambda: test_slurm.jobs_on_host(batch, 'node1'))
    waits = slurm.submit('-N4', '--exclusive', '--time=60')
    slurm.submit('-n1', '--array=1-9:2%3', '--hold')
    slurm.drain('node3', 'nova-fairness: it goes')
    patience.wait_for_value(lambda: 'None' not in slurm.reasons())
    nodes, jobs = batch._chosen()
    forms = slurm_forms.form_numbers_of_plugins(
        batch._option_output('--json=list')
    )
    assert len(forms) >= 3
    seen = {}
    for form in forms:
        json = f'--json=v0.0.{form}'
        texts = [
            batch._answer([json if '--json' in part else part for part in ask])
            for ask in (nodes, jobs)
        ]
        assert f'"job_id": {ended},' in texts[1]
        seen[form] = slurm_json.parse_snapshot(*texts, 2e9)
        assert seen[form].faults == ()
    silent = seen.pop(slurm_forms.SILENT, None)
    first, *others = seen.values()
    assert all(each == first for each in others)
    assert {work.name for work in first.places['node1'].work} == {job}
    assert [(want.name, want.cores) for want in first.wants] == [(waits, 8.0)]
    if silent is not None:
        assert silent.places == first.places


def test_the_newest_json_form_of_slurm_24_11_is_chosen(slurm, batch):
    forms = slurm_forms.form_numbers_of_plugins(
        batch._option_output('--json=list')
    )
    best = f'--json=v0.0.{slurm_forms.choose_form(forms)}'
    assert all(best in question for question in batch._chosen())
    assert plugins.load_batch('slurm').read_hosts().places.keys() == {
        *slurm_cluster.NODES
    }
