# SPDX-License-Identifier: Apache-2.0

"""What runs as root has what it needs, and nothing more."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from oslo_privsep import capabilities
import pytest

from fairness_lab.scenario import values as scenario_module
from nova_fairness.apply import privileged
from nova_fairness.apply import privileged_client
from nova_fairness.apply import privileged_network
from tests.fixtures import lab
from tests.functional import agent_process

pytestmark = [pytest.mark.real, pytest.mark.beside]

NET_ADMIN = 1 << capabilities.CAP_NET_ADMIN
SETS = ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb')
BIN = pathlib.Path(sys.executable).parent
PROGRAM = BIN / privileged_client.PROGRAM
FILTERS = pathlib.Path(__file__).parents[2] / 'rootwrap.d'
NOBODY = 65534
AS_NOBODY = (
    *('setpriv', '--reuid', str(NOBODY), '--regid', '0', '--clear-groups'),
    *('--inh-caps=+dac_read_search', '--ambient-caps=+dac_read_search', '--'),
)
"""May read what root may, for only root may reach many a checkout and Python;
may write nothing."""


def sets(text):
    """Numbers of a status file by name."""
    fields = (line.partition(':') for line in text.splitlines())
    return {
        name: int(value.split()[0], 16 if name.startswith('Cap') else 10)
        for name, _, value in fields
        if name.startswith('Cap') or name in ('NoNewPrivs', 'Uid', 'Gid')
    }


def status(pid):
    return sets(pathlib.Path(f'/proc/{pid}/status').read_text())


def helpers(context, mark):
    """Processes of a context that this test started."""
    found = []
    for path in pathlib.Path('/proc').glob('[0-9]*'):
        try:
            words = (path / 'cmdline').read_bytes().split(b'\0')
            environment = (path / 'environ').read_bytes().split(b'\0')
        except OSError:
            continue
        if context.encode() in words and mark.encode() in environment:
            found.append(int(path.name))
    return found


def in_child(act):
    """Run something in a process of its own; give what it tells."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.write(writing, act().encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return sets(text)


def of_program():
    return subprocess.run(
        ['/bin/cat', '/proc/self/status'],
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def become(kept):
    """Become what oslo.privsep makes of a helper."""
    privileged_client.drop_capabilities(kept)
    capabilities.drop_all_caps_except(kept, kept, [])


# The helpers ---------------------------------------------------------------


@pytest.mark.parametrize(
    ('of', 'kept', 'user'),
    [(privileged, 0, 0), (privileged_network, NET_ADMIN, NOBODY)],
)
def test_each_helper_has_the_fewest_capabilities_that_work(
    monkeypatch, of, kept, user
):
    mark = f'FAIRNESS_TEST={os.getpid()}'
    monkeypatch.setenv(*mark.split('='))
    of.client.prepare()
    of.client.start()
    try:
        (pid,) = helpers(of.context.pypath, mark)
        threads = list(pathlib.Path(f'/proc/{pid}/task').iterdir())
        assert threads
        for thread in threads:
            held = sets((thread / 'status').read_text())
            assert held['CapEff'] == held['CapPrm'] == kept
            assert held['CapBnd'] == kept
            assert held['CapInh'] == held['CapAmb'] == 0
            assert held['NoNewPrivs'] == 1
            assert held['Uid'] == held['Gid'] == user
    finally:
        of.context.stop()


def test_traffic_control_is_started_with_its_one_capability(
    tmp_path, monkeypatch
):
    tool = tmp_path / 'tc'
    tool.write_text('#!/bin/sh\nexec cat /proc/self/status >&2\n')
    tool.chmod(0o755)
    monkeypatch.setattr(privileged_network, '_PATH', str(tmp_path))

    def act():
        become((capabilities.CAP_NET_ADMIN,))
        return privileged_network._run_with_capability('tc', ['qdisc show'])

    found = in_child(act)
    assert {found[name] for name in SETS} == {NET_ADMIN}
    assert found['NoNewPrivs'] == 1


def test_a_program_started_by_a_confined_helper_regains_no_capability():
    def act():
        become(())
        return of_program()

    found = in_child(act)
    assert found['CapBnd'] == found['CapPrm'] == found['CapEff'] == 0


def test_an_unconfined_program_would_regain_all_capabilities():
    def act():
        capabilities.drop_all_caps_except([], [], [])
        return of_program()

    assert in_child(act)['CapEff'] & NET_ADMIN


def test_a_capability_that_the_process_lacks_cannot_be_lent():
    def act():
        become(())
        try:
            privileged_client.pass_capabilities([capabilities.CAP_NET_ADMIN])
        except OSError as error:
            return f'NoNewPrivs: {error.errno}'
        return ''

    assert in_child(act)['NoNewPrivs'] == 1


def test_confinement_can_be_repeated_without_error():
    def act():
        become(())
        privileged_client.drop_capabilities(())
        return of_program()

    assert in_child(act)['CapBnd'] == 0


# Who is not root -----------------------------------------------------------


@pytest.fixture
def directory():
    """A directory that belongs to the user who is not root."""
    path = pathlib.Path(tempfile.mkdtemp(dir='/var/tmp', prefix='privileges-'))
    os.chown(path, NOBODY, 0)
    yield path
    shutil.rmtree(path)


def sudoers(directory, line):
    path = directory / 'sudoers'
    path.write_text(f'Defaults !pam_session\n{line}\n')
    os.chown(path, 0, 0)
    path.chmod(0o440)
    return path


def rootwrap_conf(directory):
    filters = directory / 'rootwrap.d'
    shutil.copytree(FILTERS, filters)
    path = directory / 'rootwrap.conf'
    path.write_text(
        f'[DEFAULT]\nfilters_path={filters}\nexec_dirs={BIN},/usr/bin\n'
    )
    for item in (path, filters, *filters.iterdir()):
        os.chown(item, 0, 0)
    return path


def ways(directory):
    """Line of sudoers and words before the program, by way."""
    conf = rootwrap_conf(directory)
    rootwrap = BIN / 'oslo-rootwrap'
    return {
        'sudo': (f'#{NOBODY} ALL = (root) NOPASSWD: {PROGRAM}', ()),
        'rootwrap': (
            f'#{NOBODY} ALL = (root) NOPASSWD: {rootwrap} {conf} *',
            (str(rootwrap), str(conf)),
        ),
    }


def asked(context=privileged.context.pypath, path='/tmp/none/privsep.sock'):
    return ['--privsep_context', context, '--privsep_sock_path', path]


def as_nobody(directory, way, arguments):
    """Run something with sudo in a mount namespace of its own."""
    line, before = ways(directory)[way]
    file = sudoers(directory, line)
    script = f'mount --bind {file} /etc/sudoers && exec "$0" "$@"'
    words = [*AS_NOBODY, 'sudo', '-n', *before, *arguments]
    return subprocess.run(
        ['unshare', '-m', 'sh', '-c', script, *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize('way', ['sudo', 'rootwrap'])
@pytest.mark.parametrize('context', privileged_client.KEPT)
def test_a_user_other_than_root_may_start_our_helpers(directory, way, context):
    program = str(PROGRAM) if way == 'sudo' else privileged_client.PROGRAM
    done = as_nobody(directory, way, [program, *asked(context)])
    # It came as far as the socket, where nobody listens.
    said = done.stdout + done.stderr
    assert 'FileNotFoundError' in said, said


@pytest.mark.parametrize(
    'arguments',
    [
        ['/bin/true'],
        ['tc', 'qdisc', 'show'],
        [privileged_client.PROGRAM, *asked('nova.privsep.sys_admin_pctxt')],
        [privileged_client.PROGRAM, *asked(path='/etc/passwd')],
        [privileged_client.PROGRAM, *asked(), '--config-file', '/tmp/evil'],
        ['sh', '-c', 'id'],
    ],
)
@pytest.mark.parametrize('way', ['sudo', 'rootwrap'])
def test_a_user_other_than_root_may_start_nothing_else(
    directory, way, arguments
):
    if way == 'sudo' and arguments[0] == privileged_client.PROGRAM:
        arguments = [str(PROGRAM), *arguments[1:]]
    done = as_nobody(directory, way, arguments)
    assert done.returncode != 0
    assert 'uid=' not in done.stdout
    said = done.stderr
    assert (
        'a password is required' in said
        or 'not allowed' in said
        or 'Unauthorized command' in said
        or 'usage: nova-fairness-privileged' in said
    ), said


@pytest.fixture(scope='module')
def node():
    with lab.own_node('privileges') as made:
        yield made


@pytest.fixture(scope='module')
def guest(node):
    spec = scenario_module.Vm('ann-1', 'ann', cputune={'shares': '2000'})
    with lab.started_guest(node, spec) as made:
        yield made


@pytest.mark.parametrize('way', ['sudo', 'rootwrap'])
def test_an_agent_that_is_not_root_steers_and_restores(
    node, guest, directory, way
):
    line, before = ways(directory)[way]
    file = sudoers(directory, line)
    assert (
        node.run(['mount', '--bind', str(file), '/etc/sudoers']).returncode
        == 0
    )
    agent = agent_process.Agent(node, directory, policy='thesis')
    if before:
        agent.config.write_text(
            agent.config.read_text()
            + f'[{privileged.SECTION}]\n'
            + f'helper_command = sudo {" ".join(before)}'
            + f' {privileged_client.PROGRAM}\n'
        )
    try:
        agent.start(AS_NOBODY)
        agent.await_round(lambda done: done['changes'] > 0)
        assert guest.cpu_shares() <= 100
        (owner,) = {
            path.stat().st_uid for path in [pathlib.Path(f'/proc/{agent.pid}')]
        }
        assert owner == NOBODY
        for pid in agent.helpers():
            assert status(pid)['CapEff'] in (0, NET_ADMIN)
        assert agent.stop() == 0
        assert guest.cpu_shares() == 2000
    finally:
        agent.close()
        node.run(['umount', '/etc/sudoers'])
