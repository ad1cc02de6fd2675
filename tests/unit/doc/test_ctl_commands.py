# SPDX-License-Identifier: Apache-2.0

"""Every command of ``nova-fairness-ctl`` that the documents show works."""

import pathlib
import re

import pytest

from nova_fairness.cmd import ctl
from nova_fairness.cmd import ctl_options
from nova_fairness.rpc import endpoint
from nova_fairness.rpc import server
from tests.unit.agent import test_operations
from tests.unit.rpc import fake_cloud

SOURCE = pathlib.Path(__file__).resolve().parents[3] / 'doc' / 'source'
SHOWN = re.compile(r'^ +# nova-fairness-ctl (.+)$', re.MULTILINE)
HOSTS = ('n1', 'n2')


def shown_commands():
    return sorted(
        {
            line
            for path in SOURCE.rglob('*.rst')
            for line in SHOWN.findall(path.read_text('utf-8'))
        }
    )


def typed_words(line):
    """Words that an operator types for what is shown."""
    hosts = iter(HOSTS)
    of_kind = {
        'set-metric': 'UniformMetric',
        'set-policy': 'feedback',
        'prefer': 'a-1=3',
        'why': 'a-1',
        'preview': 'UniformMetric',
    }
    # The test has a file of its own.
    words = re.sub(r' --config-file \S+', '', line).split()
    if words[0] == ctl_options.TOP:
        words += ['--count', '1']
    return [
        next(hosts)
        if word == 'HOST'
        else of_kind[words[0]]
        if word in ('NAME', 'UUID', 'UUID=3', 'METRIC')
        else word
        for word in words
    ]


class FakePeering(test_operations.FakePeering):
    """Knows the other host of the documents."""

    def __init__(self, path, name):
        super().__init__(path)
        others = {host: 1.0 for host in HOSTS if host != name}
        self.exchange.view = lambda now_s, metric: test_operations.report.View(
            {}, others, {}
        )


@pytest.fixture
def configuration(tmp_path):
    """A file that leads to two agents."""
    cloud = fake_cloud.FakeCloud()
    for name in HOSTS:
        path = tmp_path / name
        path.mkdir()
        agent = test_operations.FakeAgent(path, FakePeering(path, name))
        agent.domain.configure(host=name)
        agent.rounds(3)
        cloud.servers.append(
            server.FairnessServer(
                cloud.transport,
                cloud.domain,
                name,
                endpoint.FairnessEndpoint(agent.operations),
            )
        )
        cloud.servers[-1].start()
        assert cloud.servers[-1].wait_ready(fake_cloud.ENOUGH_S)
    path = tmp_path / 'ctl.conf'
    path.write_text(
        '[DEFAULT]\ntransport_url = fake://\n'
        f'[fairness_exchange]\ndomain = {cloud.domain}\n'
    )
    yield str(path)
    cloud.stop()


def test_all_commands_are_shown():
    commands = {*ctl_options.METHODS, ctl_options.TOP}
    assert {line.split()[0] for line in shown_commands()} == commands


@pytest.mark.parametrize('line', shown_commands())
def test_a_shown_command_can_be_typed(configuration, capsys, line):
    words = [
        *typed_words(line),
        '--config-file',
        configuration,
        '--timeout',
        '60',
    ]
    code = ctl.main(words)
    said = capsys.readouterr()
    assert (code, said.err) == (0, '')
    header, *_ = said.out.splitlines()
    titles = ('HOST', 'USER', 'PROJECT', 'KIND', 'METRIC')
    begin = '{' if '--json' in words else titles
    if words[0] == ctl_options.TOP:
        begin = f'{len(HOSTS)} hosts, '
    elif words[0] == ctl_options.WHY and '--json' not in words:
        begin = 'domain-a-1 (a-1) of ann in project-ann, on '
    assert header.startswith(begin)
    assert len(said.out.splitlines()) > 1
