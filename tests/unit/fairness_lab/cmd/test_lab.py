# SPDX-License-Identifier: Apache-2.0

import subprocess
import sys

import pytest

from fairness_lab.cmd import lab
from tests.unit.fairness_lab.testbed import fake_backend


def test_list_names_every_scenario(capsys):
    assert lab.main(['list']) == lab.DONE
    out = capsys.readouterr().out
    assert 'one-node-cpu  (' in out
    assert 'frozen-guest' in out


def test_list_needs_neither_libvirt_nor_matplotlib():
    code = (
        'import sys\n'
        'sys.modules["libvirt"] = sys.modules["matplotlib"] = None\n'
        'from fairness_lab.cmd import lab\n'
        'sys.exit(lab.main(["list"]))\n'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b'')


@pytest.mark.parametrize(
    ('arguments', 'says'),
    [
        (['run', 'nothing'], 'there is no scenario nothing'),
        (['run', '/nowhere.yaml'], '/nowhere.yaml cannot be read'),
        (['run', 'spike', '--metric', 'X'], 'there is no metric X'),
        (
            ['run', 'spike', '--policy', 'X'],
            'one of feedback, foresight, proportional, thesis',
        ),
    ],
)
def test_a_wrong_choice_is_named(capsys, arguments, says):
    assert lab.main(arguments) == lab.BAD_USAGE
    err = capsys.readouterr().err
    assert err.startswith('nova-fairness-lab: ')
    assert says in err


@pytest.mark.parametrize(
    'arguments',
    [
        [],
        ['fly'],
        ['run'],
        ['run', 'spike', '--interval', '0'],
        ['run', 'spike', '--duration', 'nan'],
        ['run', 'spike', '--cpu-weight', '0.5'],
        ['run', 'spike', '--backend', 'xen'],
        ['compare', 'a'],
    ],
)
def test_wrong_usage_has_its_exit_code(capsys, arguments):
    with pytest.raises(SystemExit) as caught:
        lab.main(arguments)
    assert caught.value.code == lab.BAD_USAGE


@pytest.mark.parametrize(('more', 'count'), [([], 1), (['--no-agents'], 0)])
def test_a_harmful_metric_and_policy_are_named(
    tmp_path, capsys, monkeypatch, more, count
):
    fake_backend.use_fake_backend(monkeypatch)
    words = 'run one-node-cpu --duration 4 --interval 1'
    chosen = ['--metric', 'GreedinessMetric', '--out', str(tmp_path / 'run')]
    lab.main([*words.split(), *chosen, *more])
    said = capsys.readouterr().err
    assert said.count('lab: warning: metric GreedinessMetric') == count


def test_a_directory_without_a_result_cannot_be_compared(tmp_path, capsys):
    code = lab.main(['compare', str(tmp_path), str(tmp_path)])
    assert code == lab.FAILED
    assert 'holds no result' in capsys.readouterr().err
