# SPDX-License-Identifier: Apache-2.0

"""What a release holds works in empty environments, each extra alone."""

import configparser
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

# Everything is downloaded, some of it is built.
pytestmark = [
    pytest.mark.real,
    pytest.mark.beside,
    pytest.mark.slow,
    pytest.mark.timeout(3600),
]

TOP = pathlib.Path(__file__).resolve().parents[2]
VERSION = '1.0.0'
NEWER = 'python3.13'


def extras():
    parser = configparser.ConfigParser()
    parser.read(TOP / 'setup.cfg', encoding='utf-8')
    return ['', *parser['extras']]


PROGRAMS = {
    'client': ('openstack', 'fairness', '--help'),
    'sim': ('nova-fairness-sim', 'run', 'two-nodes', '--out', 'results'),
}
"""What an extra is for, beside the checks that all have."""


def ran(*command, cwd, codes=(0,)):
    done = subprocess.run(
        [str(each) for each in command],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        # No search path, and no git: neither is there where it is installed.
        env={'PATH': '/usr/bin:/bin', 'HOME': str(cwd), 'LC_ALL': 'C.UTF-8'},
    )
    said = done.stdout + done.stderr
    assert done.returncode in codes, said[-8000:]
    assert 'Traceback' not in said
    return said


@pytest.fixture(scope='module')
def built(tmp_path_factory):
    place = tmp_path_factory.mktemp('release')
    done = subprocess.run(
        [TOP / 'tools' / 'release.sh', VERSION, '--out', place],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]
    return place


def pythons():
    """This Python, and a newer one where the machine has it."""
    newer = shutil.which(NEWER)
    asks = 'import sys; print(sys.executable)'
    found = newer and subprocess.run(
        [newer, '-c', asks],
        capture_output=True,
        text=True,
        check=False,
        # Where pyenv keeps several, it hides all but one.
        env={**os.environ, 'PYENV_VERSION': '3.13'},
    )
    return [sys.executable, *(found.stdout.split() if found else ())]


def installed(python, place, what):
    subprocess.run([python, '-m', 'venv', place], check=True)
    subprocess.run(
        [place / 'bin' / 'pip', 'install', '-q', what],
        check=True,
        cwd=place,
    )
    return place / 'bin'


@pytest.mark.parametrize('extra', extras())
@pytest.mark.parametrize('python', pythons(), ids=os.path.basename)
def test_an_extra_works_alone(built, tmp_path, python, extra):
    (wheel,) = built.glob('*.whl')
    asked = f'nova-fairness[{extra}]' if extra else 'nova-fairness'
    programs = installed(python, tmp_path / 'env', f'{asked} @ file://{wheel}')
    ran(programs / 'pip', 'check', cwd=tmp_path)
    said = ran(
        *(programs / 'nova-fairness-status', '--controller'),
        *('upgrade', 'check'),
        cwd=tmp_path,
        codes=(0, 1),
    )
    assert 'Check: Options' in said
    if extra in PROGRAMS:
        program, *words = PROGRAMS[extra]
        assert ran(programs / program, *words, cwd=tmp_path)


def test_the_source_installs_without_git(built, tmp_path):
    (source,) = built.glob('*.tar.gz')
    programs = installed(sys.executable, tmp_path / 'env', str(source))
    said = ran(programs / 'nova-fairness', '--version', cwd=tmp_path)
    assert VERSION in said


def test_a_malformed_version_is_refused(tmp_path):
    done = subprocess.run(
        [TOP / 'tools' / 'release.sh', '1.0', '--out', tmp_path / 'none'],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "expected a version like 1.0.0, not '1.0'" in done.stderr
    assert not (tmp_path / 'none').exists()
