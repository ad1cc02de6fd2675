# SPDX-License-Identifier: Apache-2.0

import json
import subprocess
import sys

import pytest

from nova_fairness.cmd import keys
from oslo_messaging_zmq.keys import files
from oslo_messaging_zmq.keys import keyring


@pytest.fixture
def run(tmp_path, capsys):
    def command(*arguments):
        code = keys.main(['--directory', str(tmp_path / 'keys'), *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    command.place = tmp_path / 'keys'
    return command


def test_a_key_is_made_allowed_rotated_and_revoked(run):
    code, out, _ = run('make', 'n1')
    assert code == 0
    old = files.read_pair(run.place / 'n1.secret')
    assert old.public in out
    code, out, _ = run('rotate', 'n1')
    assert code == 0
    assert f"--directory {run.place} revoke -- '{old.public}'" in out
    code, out, _ = run('check')
    assert code == 0
    assert 'note: n1 has 2 valid keys' in out
    code, out, _ = run('revoke', old.public)
    assert code == 0
    assert f'revoked {old.public} of n1' in out
    code, out, _ = run('check')
    assert code == 0
    assert 'no errors found: 1 node, 1 revoked' in out


def test_no_command_shows_a_secret(run):
    shown = ''
    secrets = set()
    for arguments in (
        ('make', 'n1'),
        ('make', 'n2', '--role', 'controller'),
        ('list',),
        ('list', '--json'),
        ('rotate', 'n1'),
        ('check',),
        ('revoke', 'n1'),
        ('check',),
    ):
        _, out, err = run(*arguments)
        shown += out + err
        for path in run.place.glob('*.secret'):
            secrets.add(files.read_pair(path).secret.decode())
    assert len(secrets) == 3
    assert not any(secret in shown for secret in secrets)


def test_the_machine_readable_key_list_has_all_fields(run):
    run('make', 'ctl', '--role', 'controller')
    run('make', 'n1')
    run('revoke', 'n1')
    _, out, _ = run('list', '--json')
    document = json.loads(out)
    assert document['version'] == 1
    first, second = document['keys']
    assert (first['name'], first['role']) == ('ctl', 'controller')
    assert (first['revoked'], first['revoked_at']) == (False, None)
    assert (second['name'], second['revoked']) == ('n1', True)
    assert second['revoked_at'] >= second['created']
    assert len(first['public']) == 40


def test_a_name_answers_for_further_servers_and_no_longer(run):
    run('make', 'n1')
    code, out, _ = run('serves', 'n1', 'n1@lvm', 'n1@ceph')
    assert code == 0
    assert out.startswith('n1 may answer for n1 and n1@lvm, n1@ceph\n')
    assert 'Copy allowed.json to every node.' in out
    _, out, _ = run('check')
    assert 'note: n1 may also answer for n1@lvm, n1@ceph' in out
    _, out, _ = run('list')
    assert out.splitlines()[1].endswith('n1@lvm n1@ceph')
    _, out, _ = run('list', '--json')
    assert json.loads(out)['keys'][0]['serves'] == ['n1@lvm', 'n1@ceph']
    code, out, _ = run('serves', 'n1')
    assert out.startswith('n1 may answer for n1 and no other host\n')
    _, out, _ = run('check')
    assert 'note' not in out


def test_the_list_for_people_has_a_line_per_key(run):
    run('make', 'ctl', '--role', 'controller')
    run('make', 'n1')
    run('revoke', 'n1')
    _, out, _ = run('list')
    lines = out.splitlines()
    assert lines[0].split()[:3] == ['NAME', 'ROLE', 'STATE']
    assert [line.split()[:3] for line in lines[1:]] == [
        ['ctl', 'controller', 'good'],
        ['n1', 'node', 'revoked'],
    ]
    assert lines[1].split()[-2:] == ['-', '-'], 'never revoked, serves none'


def test_a_key_from_elsewhere_is_allowed(run):
    public, _ = keyring.new_pair()
    code, out, _ = run('allow', 'n1', public, '--role', 'controller')
    assert code == 0
    assert f'allowed {public} of n1 as controller' in out
    code, _, err = run('allow', 'n2', public)
    assert code == 2
    assert 'is there as key of n1' in err


def test_a_key_that_begins_with_a_hyphen_is_allowed_after_two_hyphens(run):
    public = '-' + keyring.new_pair()[0][1:]
    code, out, _ = run('allow', '--', 'n1', public)
    assert code == 0
    code, out, _ = run('revoke', '--', public)
    assert code == 0
    assert f'revoked {public}' in out


@pytest.mark.parametrize(
    ('arguments', 'said'),
    [
        (('make', '../etc'), 'is no name'),
        (('rotate', 'n1'), 'allowed.json cannot be read'),
        (('revoke', 'n1'), 'allowed.json cannot be read'),
        (('allow', 'n1', 'short'), 'is no public key'),
        (('list',), 'cannot be read'),
        (('serves', 'n1', 'n2'), 'allowed.json cannot be read'),
        (('serves', 'n1', 'a b'), 'is no name of a server'),
    ],
)
def test_bad_input_ends_with_2_and_a_reason(run, arguments, said):
    run.place.mkdir()
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ''
    assert err.startswith('nova-fairness-keys: ')
    assert 'Traceback' not in err
    assert said in err


@pytest.mark.parametrize(
    'arguments', [(), ('make',), ('make', 'n1', '--role', 'root'), ('steal',)]
)
def test_wrong_usage_ends_with_2(run, arguments):
    with pytest.raises(SystemExit) as raised:
        run(*arguments)
    assert raised.value.code == 2


def test_check_ends_with_1_when_something_is_wrong(run):
    run('make', 'n1')
    (run.place / 'n1.secret').chmod(0o644)
    code, out, _ = run('check')
    assert code == 1
    assert 'error: ' in out
    assert 'can be read by others' in out


def test_the_command_needs_nothing_of_oslo():
    script = (
        'import sys; from nova_fairness.cmd import keys;'
        'found = {name.partition(".")[0] for name in sys.modules};'
        'print([name for name in found if name.startswith("oslo")])'
    )
    done = subprocess.run(
        [sys.executable, '-c', script],
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout.strip() == "['oslo_messaging_zmq']"
