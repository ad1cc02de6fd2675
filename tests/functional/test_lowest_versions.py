# SPDX-License-Identifier: Apache-2.0

"""All that uses libraries works with the lowest allowed version of each."""

import os
import re
import shutil
import subprocess
import sys
import venv

import pytest

from tests.fixtures import lower_bounds
from tools import changed

# Everything is downloaded, some of it is built.
pytestmark = [
    pytest.mark.real,
    pytest.mark.beside,
    pytest.mark.slow,
    pytest.mark.timeout(3600),
]

UNIT = lower_bounds.TOP / 'tests' / 'unit'
ASKS = """
import importlib.metadata, sys
for name in sys.argv[1:]:
    print(name, importlib.metadata.version(name))
"""


def run(*command, **more):
    done = subprocess.run(
        [str(each) for each in command],
        capture_output=True,
        text=True,
        check=False,
        cwd=lower_bounds.TOP,
        **more,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]
    return done.stdout


@pytest.fixture(scope='module')
def lowest(tmp_path_factory):
    """The python of an environment of its own, with the lowest versions."""
    place = tmp_path_factory.mktemp('lowest')
    venv.create(place / 'env', with_pip=True)
    python = place / 'env' / 'bin' / 'python'
    extras = {*lower_bounds.ROOMS.values(), 'parquet'} - {''}
    bounds = place / 'bounds.txt'
    bounds.write_text('\n'.join(lower_bounds.pinned(extras)) + '\n')
    install = (python, '-m', 'pip', 'install', '--quiet', '--no-input')
    run(*install, '-r', bounds)
    # Tests need what they need, without another version of these.
    run(*install, '-c', bounds_without_extras(bounds), *TESTS)
    # Its entry points; tests import the modules of this tree.
    version = {**os.environ, 'PBR_VERSION': '0.0.1'}
    run(*install, '--no-deps', _copied(place), env=version)
    return python


def _copied(place):
    """A copy of the tree, in which a build may leave what it likes."""
    made = place / 'tree'
    files = run('git', 'ls-files', '-z').split('\0')
    for name in filter(None, files):
        source, target = lower_bounds.TOP / name, made / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    return made


TESTS = (
    'croniter', 'eventlet', 'hypothesis', 'packaging', 'pytest',
    'pytest-timeout', 'pytest-xdist', 'python-dateutil', 'requests-mock',
    'testtools', 'fixtures', 'oslotest', 'waitress',
)  # fmt: skip
"""What the unit tests of these rooms import beside the libraries."""


def _that_need_nova():
    """Test modules that import Nova, or another module that does."""
    texts = {
        str(path.relative_to(lower_bounds.TOP)): path.read_text()
        for path in lower_bounds.TOP.glob('tests/**/*.py')
    }
    users = changed.users_of(texts, changed.imported)
    nova = [path for path in users if re.match(r'nova[./]', path)]
    return {lower_bounds.TOP / path for path in changed.reached(nova, users)}


NOT = [
    f'--ignore={path}'
    for path in sorted(
        {*_that_need_nova(), *UNIT.rglob('test_fuzz.py')}
        & {*UNIT.rglob('test_*.py')}
    )
]
"""The fuzzer of the HTTP interface needs a newer jsonschema than we do."""


def bounds_without_extras(bounds):
    """The same as constraints, in which pip takes no extras."""
    made = bounds.with_name('constraints.txt')
    lines = bounds.read_text().splitlines()
    plain = [line.partition('[')[0] for line in lines if '[' in line]
    versions = [line.partition('==')[2] for line in lines if '[' in line]
    named = [line for line in lines if '[' not in line]
    named += [
        f'{name}=={version}'
        for name, version in zip(plain, versions, strict=True)
    ]
    made.write_text('\n'.join(named) + '\n')
    return made


def test_each_library_has_the_lowest_version_that_is_allowed(lowest):
    extras = {*lower_bounds.ROOMS.values(), 'parquet'} - {''}
    bounds = {
        name.partition('[')[0]: bound
        for name, bound in lower_bounds.lowest(extras).items()
    }
    told = run(lowest, '-c', ASKS, *bounds).splitlines()
    found = dict(line.split(' ') for line in told)
    for name, bound in bounds.items():
        assert (found[name] + '.').startswith(bound + '.'), name


@pytest.mark.parametrize('room', list(lower_bounds.ROOMS))
def test_the_tests_of_a_room_pass_with_lowest_versions(lowest, room):
    told = run(
        *(lowest, '-m', 'pytest', '-q', '-n0', '-p', 'no:cacheprovider'),
        *('-W', 'ignore', '-m', 'not slow', UNIT / room, *NOT),
        env={
            **os.environ,
            'PYTHONHASHSEED': '0',
            'PYTHONPATH': str(lower_bounds.TOP),
        },
    )
    assert ' passed' in told


def test_the_environment_of_lowest_versions_is_separate(lowest):
    assert os.path.realpath(
        run(lowest, '-c', 'import sys; print(sys.prefix)').strip()
    ) != os.path.realpath(sys.prefix)
