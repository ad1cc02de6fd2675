# SPDX-License-Identifier: Apache-2.0

"""The program that sudo permits does one thing, whatever it is told."""

import os
import sys

import pytest

from nova_fairness.apply import privileged_client
from nova_fairness.cmd import privileged

FILES = 'nova_fairness.apply.privileged.context'
SOCKET = '/tmp/tmpab1_x/privsep.sock'


@pytest.fixture
def started(monkeypatch):
    """Gives what would be started, and what it would keep."""
    seen = []
    monkeypatch.setattr(os, 'environ', dict(os.environ))
    monkeypatch.setattr(sys, 'argv', list(sys.argv))
    monkeypatch.setattr(privileged_client, 'drop_capabilities', seen.append)
    monkeypatch.setattr(
        privileged_client.daemon, 'helper_main', lambda: seen.append(sys.argv)
    )
    return seen


def asked(context=FILES, socket=SOCKET):
    return ['--privsep_context', context, '--privsep_sock_path', socket]


@pytest.mark.parametrize('context', privileged_client.KEPT)
def test_a_helper_is_confined_before_it_is_started(started, context):
    assert privileged.main(asked(context)) == 0
    assert started == [
        privileged_client.KEPT[context],
        [privileged_client.PROGRAM, *asked(context)],
    ]


def test_the_helper_gets_no_environment_variable_of_the_caller(started):
    os.environ['XDG_CONFIG_HOME'] = '/tmp/evil'
    privileged.main(asked())
    assert set(os.environ) == {'PATH', 'HOME'}


@pytest.mark.parametrize(
    'arguments',
    [
        [],
        asked()[:2],
        asked(context='nova.privsep.sys_admin_pctxt'),
        asked(context='os.system'),
        asked(socket='privsep.sock'),
        asked(socket='/tmp/../etc/x'),
        asked(socket='/tmp/a b/privsep.sock'),
        [*asked(), '--config-file', '/tmp/evil'],
        [*asked(), '--log-config-append=/tmp/evil'],
        [*asked(), '/tmp/evil'],
        ['--privsep_con', FILES, *asked()[2:]],
    ],
)
def test_the_privileged_program_refuses_other_arguments(started, arguments):
    with pytest.raises(SystemExit) as error:
        privileged.main(arguments)
    assert error.value.code == 2
    assert started == []


def test_without_confinement_nothing_is_started(started, monkeypatch, capsys):
    def refuse(kept):
        raise PermissionError(1, 'Operation not permitted')

    monkeypatch.setattr(privileged_client, 'drop_capabilities', refuse)
    assert privileged.main(asked()) == 1
    assert started == []
    assert 'start it as root' in capsys.readouterr().err
