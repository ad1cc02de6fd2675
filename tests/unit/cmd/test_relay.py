# SPDX-License-Identifier: Apache-2.0

"""What the command line of the relay says."""

import pytest

from nova_fairness.cluster.store import sealing
from nova_fairness.cmd import relay
from tests.unit.cmd import test_cluster

configured = test_cluster.configured


def test_help_lists_the_commands(capsys):
    with pytest.raises(SystemExit) as ended:
        relay.main(['--help'])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    assert 'nova-fairness-relay' in told
    assert 'declare' in told


def test_an_unknown_command_is_named_with_those_that_exist(capsys):
    assert relay.main(['declar']) == 2
    assert capsys.readouterr().err == (
        "nova-fairness-relay: command 'declar' is unknown; "
        'expected run or declare or remove\n'
    )


@pytest.mark.parametrize(
    ('options', 'said'),
    [
        ({}, '[fairness_cluster] broker: empty'),
        ({'broker': 'rabbit://h/'}, '[fairness_cluster] broker: not a URL'),
        ({'broker': 'amqp://h:port/'}, 'broker: not a URL'),
        ({'broker': 'amqp://h//;amqp:///'}, 'broker: not a URL'),
        (
            {'broker': 'amqp://h//', 'cell_broker': 'h:5672'},
            '[fairness_cluster] cell_broker: not a URL',
        ),
        (
            {'broker': 'amqp://h//', 'front_exchange': 'nova'},
            'front_exchange and nova_exchange: both are nova',
        ),
    ],
)
@pytest.mark.parametrize('command', ['run', 'declare'])
def test_an_option_that_is_wrong_is_named(
    tmp_path, capsys, options, said, command
):
    assert relay.main([*configured(tmp_path, **options), command]) == 2
    errors = capsys.readouterr().err
    assert said in errors
    assert 'Traceback' not in errors


def test_a_password_is_not_printed(tmp_path, capsys):
    given = configured(tmp_path, broker='rabbit://u:secret@h/')
    assert relay.main(given) == 2
    assert 'secret' not in capsys.readouterr().err


def test_tables_that_are_missing_are_told_before_anything_runs(
    tmp_path, capsys
):
    keys = tmp_path / 'keys'
    sealing.add_key(keys)
    given = configured(tmp_path, broker='amqp://h//', key_file=keys)
    assert relay.main(given) == 1
    assert 'nova-fairness-cluster upgrade' in capsys.readouterr().err
