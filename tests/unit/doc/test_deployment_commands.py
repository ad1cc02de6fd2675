# SPDX-License-Identifier: Apache-2.0


"""What the documents say to type for deployment can be typed."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from nova_fairness.cmd import keys
from nova_fairness.cmd import status

TOP = pathlib.Path(__file__).resolve().parents[3]
SOURCE = TOP / 'doc' / 'source'
GENERATORS = {
    'oslo-config-generator': 'oslo_config.generator:main',
    'oslopolicy-sample-generator': 'oslo_policy.generator:generate_sample',
}


def shown_commands(program):
    found = re.compile(rf'^ +[#$] ({program} .+)$', re.MULTILINE)
    return sorted(
        {
            line
            for path in SOURCE.rglob('*.rst')
            for line in found.findall(path.read_text('utf-8'))
        }
    )


@pytest.mark.parametrize(
    'line', shown_commands('nova-fairness-status(?: .+)? upgrade')
)
def test_a_check_that_is_shown_says_all_it_looked_at(
    tmp_path, capsys, monkeypatch, line
):
    # Whoever is not root starts no privileged helper.
    monkeypatch.setattr(os, 'geteuid', lambda: 1000)
    path = tmp_path / 'agent.conf'
    path.write_text(
        '[DEFAULT]\ntransport_url = rabbit://h//\n'
        f'[fairness]\nstate_path = {tmp_path}\n'
        'connection_uri = test:///default\ncontrols = network\n'
    )
    words = line.split()[1:]
    words = [
        str(path) if before == '--config-file' else word
        for before, word in zip(['', *words], words, strict=False)
    ]
    if '--config-file' not in words:
        words = ['--config-file', str(path), *words]
    code = status.main(words)
    said = capsys.readouterr()
    assert code in {0, 1}, said.out
    assert said.err == ''
    assert 'Check: Keys' in said.out
    assert ('Check: libvirt' in said.out) == ('--controller' not in words)


def test_keys_are_made_as_the_install_guide_says(tmp_path, capsys):
    lines = [
        line
        for line in shown_commands('nova-fairness-keys')
        if '/root/' in line
    ]
    # The last one is of the page on uninstalling.
    assert [line.split()[3] for line in lines] == ['make', 'make', 'revoke']
    for line in lines:
        words = line.replace('/root/', f'{tmp_path}/').split()[1:]
        assert keys.main(words) == 0
    capsys.readouterr()
    place = tmp_path / 'fairness-keys'
    assert {path.name for path in place.glob('*.secret')} == {
        'ctl1.secret',
        'node01.secret',
    }


@pytest.mark.parametrize(
    'line', [line for name in GENERATORS for line in shown_commands(name)]
)
def test_samples_are_generated_as_the_documents_say(tmp_path, line):
    program, *words = line.split()
    module, _, function = GENERATORS[program].partition(':')
    sample = tmp_path / 'sample'
    done = subprocess.run(
        [
            *(sys.executable, '-c', f'import {module} as m; m.{function}()'),
            *(*words, '--output-file', str(sample)),
        ],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(sample.read_text().splitlines()) > 20


def test_all_samples_are_shown():
    configured = sorted(
        f'etc/nova-fairness/{path.name}'
        for path in (TOP / 'etc' / 'nova-fairness').glob('*-generator.conf')
    )
    lines = [line for name in GENERATORS for line in shown_commands(name)]
    assert sorted({line.split()[-1] for line in lines}) == configured
