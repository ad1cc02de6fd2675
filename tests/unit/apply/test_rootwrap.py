# SPDX-License-Identifier: Apache-2.0


"""The rootwrap filter starts our helper, and nothing else."""

import pathlib
import sys

from oslo_config import cfg
from oslo_rootwrap import wrapper
import pytest

from nova_fairness.apply import privileged
from nova_fairness.apply import privileged_client

FILTERS = pathlib.Path(__file__).parents[3] / 'rootwrap.d'
BIN = str(pathlib.Path(sys.executable).parent)
CONTEXTS = (
    'nova_fairness.apply.privileged.context',
    'nova_fairness.apply.privileged_network.context',
)
CONTEXT = CONTEXTS[0]
SOCKET = '/tmp/tmpa1_b2c3d/privsep.sock'


def command(program=privileged_client.PROGRAM, context=CONTEXT, socket=SOCKET):
    return [
        program,
        '--privsep_context',
        context,
        '--privsep_sock_path',
        socket,
    ]


def matched(args):
    """Filter of our file that permits a command.

    oslo.rootwrap appends one that permits privsep-helper with any arguments;
    what our own file asserts is what counts here.
    """
    *ours, added = wrapper.load_filters([str(FILTERS)])
    assert added.name == 'privsep-helper'
    return wrapper.match_filter(ours, args, [BIN])


def test_the_command_of_the_documentation_is_allowed():
    cfg.CONF.set_override(
        'helper_command', privileged_client.PROGRAM, group=privileged.SECTION
    )
    try:
        args = privileged.context.helper_command(SOCKET)
    finally:
        cfg.CONF.clear_override('helper_command', group=privileged.SECTION)
    allowed = matched(args)
    assert allowed.run_as == 'root'
    assert allowed.get_command(args, [BIN])[-len(args) + 1 :] == args[1:]


@pytest.mark.parametrize('context', CONTEXTS)
def test_rootwrap_allows_both_helpers(context):
    assert matched(command(context=context)).run_as == 'root'
    other = command(context=context, socket='/var/tmp/tmpabc/privsep.sock')
    assert matched(other).run_as == 'root'


@pytest.mark.parametrize(
    'args',
    [
        [privileged_client.PROGRAM],
        ['privsep-helper', *command()[1:]],
        ['privsep-helper', '--config-file', '/tmp/x', *command()[1:]],
        command(program='sh'),
        command(program=f'/tmp/{privileged_client.PROGRAM}'),
        command(context='nova.privsep.sys_admin_pctxt'),
        command(context='nova_fairness_apply.privileged.context'),
        command(context='nova_fairness.apply.privileged_other.context'),
        command(context=f'{CONTEXT}.start'),
        command(context=f'x.{CONTEXT}'),
        command(socket='/etc/privsep.sock'),
        command(socket='/tmp/../etc/privsep.sock'),
        command(socket='/tmp/a/b/privsep.sock'),
        command(socket='/tmp/a/privsep.sock.evil'),
        [*command(), '--log-config-append', '/tmp/x'],
        [*command()[:1], '--config-dir', '/tmp', *command()[1:]],
        command()[:3],
        ['tc', 'qdisc', 'del', 'dev', 'eth0', 'root'],
    ],
)
def test_rootwrap_refuses_all_other_commands(args):
    with pytest.raises(wrapper.NoFilterMatched):
        matched(args)


def test_the_filter_and_the_program_know_the_same_contexts():
    assert set(privileged_client.KEPT) == set(CONTEXTS)
