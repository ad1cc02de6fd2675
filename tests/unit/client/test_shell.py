# SPDX-License-Identifier: Apache-2.0

"""The commands in the real command line of OpenStack."""

import json
import logging

from openstackclient import shell
import pytest

from tests.unit.client import fake_compute

UUID = '53a7a2a1-7d4e-4a55-9d3c-2a8f9d0a1c11'
WHO = (
    '--os-auth-url', fake_compute.IDENTITY,
    '--os-username', 'ann',
    '--os-password', 'x',
    '--os-user-domain-id', 'default',
    '--os-project-id', 'p1',
    '--os-region-name', 'one',
)  # fmt: skip


@pytest.fixture
def cloud(requests_mock, monkeypatch, tmp_path):
    # No clouds.yaml of whoever runs this.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('HOME', str(tmp_path))
    return fake_compute.FakeCompute(requests_mock)


@pytest.fixture
def openstack(capsys):
    """Run a command; give its code, its output and its complaints."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level

    def run(*words):
        code = shell.main([*WHO, 'fairness', *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    yield run
    # It sets up the log of the whole process.
    root.handlers[:] = handlers
    root.setLevel(level)


def test_a_command_is_found_and_asks_with_the_token(cloud, openstack):
    why = {'summary': 'Wait.', 'uuid': UUID}
    cloud.answers(f'/instances/{UUID}', {'instance': why})
    code, out, err = openstack('server', 'show', UUID, '-f', 'json')
    assert (code, json.loads(out)) == (0, why), err
    assert cloud.asked[-1].headers['X-Auth-Token'] == 'secret'


def test_a_failed_command_prints_its_reason_without_traceback(
    cloud, openstack
):
    fault = {'forbidden': {'code': 403, 'message': 'Not you.'}}
    cloud.answers('/hosts', fault, 403)
    code, out, err = openstack('host', 'list')
    assert (code, out) == (1, '')
    assert err == 'Not you. (HTTP 403)\n'


def test_a_missing_host_ends_the_command_with_exit_code_1(cloud, openstack):
    cloud.answers(
        '/all/action',
        {
            'hosts': [{'name': 'cmp1', 'from_round': 3}],
            'not_reached': [{'host': 'cmp2', 'reason': 'no answer'}],
        },
        202,
        'POST',
    )
    code, out, err = openstack('host', 'reset', '--all', '-f', 'value')
    assert (code, out) == (1, 'cmp1 3\n')
    assert err == 'cmp2 was not reached: no answer\n'
