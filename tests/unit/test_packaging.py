# SPDX-License-Identifier: Apache-2.0

"""The package, its lists and its scripts fit together."""

import ast
import configparser
import contextlib
import importlib
from importlib import metadata
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib

from packaging import requirements as pip
from packaging import utils as pip_names
import pytest

from fairness_lab.testbed.nodes import processes
from tests.fixtures.nova_cloud import __main__ as nova_cloud
from tests.fixtures.nova_cloud import boards
from tools import changed

TOP = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = (
    'api_ext',
    'fairness_dashboard',
    'fairness_lab',
    'nova_fairness',
    'oslo_messaging_zmq',
)
FOLDERS = (*PACKAGES, 'tests', 'tools', 'benchmarks')
SCRIPTS = (
    'tools/test.sh',
    'tools/lab.sh',
    'tools/deb.sh',
    'tools/messages.sh',
    '.ci/run',
    'tools/release.sh',
)
LICENCE = 'SPDX-License-Identifier: Apache-2.0'

DISTRIBUTION = {
    'axe_core_python': 'axe-core-python',
    'dateutil': 'python-dateutil',
    'libvirt': 'libvirt-python',
    'libvirt_qemu': 'libvirt-python',
    'openstack': 'openstacksdk',
    'openstack_auth': 'horizon',
    'openstack_dashboard': 'horizon',
    'os_resource_classes': 'os-resource-classes',
    'openstackclient': 'python-openstackclient',
    'osc_lib': 'osc-lib',
    'prometheus_client': 'prometheus-client',
    'requests_mock': 'requests-mock',
    'watcher': 'python-watcher',
    'yaml': 'pyyaml',
    'zmq': 'pyzmq',
}
"""Distribution by import name, where it is not the same."""


def section(name: str) -> dict[str, str]:
    parser = configparser.ConfigParser()
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(TOP / 'setup.cfg', encoding='utf-8')
    return dict(parser[name])


def entry_points() -> list[tuple[str, str, str]]:
    return [
        (group, *(part.strip() for part in line.split('=', 1)))
        for group, lines in section('entry_points').items()
        for line in lines.split('\n')
        if line
    ]


def requirements(lines: list[str]) -> set[str]:
    names = [re.match(r'[\w.-]+', line) for line in lines]
    return {name[0].lower() for name in names if name}


def declared() -> set[str]:
    text = (TOP / 'requirements.txt').read_text(encoding='utf-8')
    extras = '\n'.join(section('extras').values())
    return requirements([*text.splitlines(), *extras.splitlines()])


WITHOUT = """\
import importlib, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in absent:
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)

absent = set(sys.argv[1].split())
sys.meta_path.insert(0, Absent())
importlib.import_module(sys.argv[2])
"""
"""Imports a module as where less is installed than here."""


def installed_with(extra: str) -> set[str]:
    """Distributions that pip installs with an extra, or with none ('')."""
    lines = (TOP / 'requirements.txt').read_text(encoding='utf-8').split('\n')
    lines += section('extras')[extra].split('\n') if extra else []
    wanted = [pip.Requirement(line.split('#')[0]) for line in lines if line]
    found: set[str] = set()
    while wanted:
        next_one = wanted.pop()
        name = pip_names.canonicalize_name(next_one.name)
        extras = {'', *next_one.extras}
        if name in found and extras == {''}:
            continue
        found.add(name)
        with contextlib.suppress(metadata.PackageNotFoundError):
            for line in metadata.requires(name) or ():
                needed = pip.Requirement(line)
                if not needed.marker or any(
                    needed.marker.evaluate({'extra': each}) for each in extras
                ):
                    wanted.append(needed)
    return found


def imported_with(extras: tuple[str, ...], module: str) -> str:
    """Import a module where no more is there than pip installs.

    :returns: what was missing; '' if nothing was.
    """
    there = {'nova-fairness', 'setuptools'}.union(*map(installed_with, extras))
    absent = [
        top
        for top, owners in metadata.packages_distributions().items()
        if not there & {pip_names.canonicalize_name(each) for each in owners}
    ]
    return subprocess.run(
        [
            *(sys.executable, '-W', 'ignore', '-c', WITHOUT),
            *(' '.join(absent), module),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=TOP,
    ).stderr


EXTRAS = {
    'nova_fairness.client.plugin': ('client',),
    'nova_fairness.cmd.cluster': ('cluster',),
    'nova_fairness.cmd.relay': ('cluster',),
    'fairness_lab.cmd.lab': ('lab',),
    'fairness_lab.cmd.sim': ('lab',),
    'api_ext.filter': ('api', 'nova'),
}
"""What users install with a program, and where: Nova loads the filter."""
PROGRAMS = sorted(
    {
        target.partition(':')[0]
        for group, _name, target in entry_points()
        if group in ('console_scripts', 'openstack.cli.extension')
    }
    | {*EXTRAS}
)


@pytest.mark.repeated
@pytest.mark.parametrize('module', PROGRAMS)
def test_packages_that_come_with_a_program_are_enough(module: str) -> None:
    assert not imported_with(EXTRAS.get(module, ('',)), module)


def test_a_missing_package_is_noticed() -> None:
    assert 'No module named' in imported_with(('',), 'nova_fairness.cmd.relay')


def third_party_imports(folder: str) -> set[str]:
    """Distributions that the sources in a folder import."""
    found: set[str] = set()
    for path in (TOP / folder).rglob('*.py'):
        for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
            if isinstance(node, ast.Import):
                found.update(name.name.split('.')[0] for name in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add((node.module or '').split('.')[0])
    ours = {*PACKAGES, 'nova', 'tests', 'benchmarks'}
    return {
        DISTRIBUTION.get(name, name.replace('_', '.').lower())
        for name in found - set(sys.stdlib_module_names) - ours
    }


@pytest.mark.parametrize(
    ('group', 'name', 'target'),
    # Watcher is loaded by tests/functional/test_watcher.py, where it is.
    [each for each in entry_points() if each[0] != 'watcher_strategies'],
)
def test_every_entry_point_leads_somewhere(group, name, target):
    module, _, attribute = target.partition(':')
    found = importlib.import_module(module)
    # The client of OpenStack takes the module itself.
    assert not attribute or callable(getattr(found, attribute))


def test_plugins_are_named_after_their_class():
    pairs = [
        (name, target.partition(':')[2])
        for group, name, target in entry_points()
        if group == 'nova_fairness.metrics'
    ]
    assert pairs
    assert [pair for pair in pairs if pair[0] != pair[1]] == []


@pytest.mark.parametrize('folder', PACKAGES)
def test_every_import_of_a_package_is_a_declared_requirement(folder):
    assert third_party_imports(folder) - declared() == set()


@pytest.mark.parametrize('folder', ['tests', 'benchmarks'])
def test_every_import_of_a_test_is_a_declared_requirement(folder):
    # Tests of the dashboard have an environment of their own.
    lists = 'test-requirements.txt', 'tests/integration/dashboard/pip.txt'
    text = '\n'.join((TOP / each).read_text('utf-8') for each in lists)
    known = declared() | requirements(text.splitlines()) | {'tools'}
    assert third_party_imports(folder) - known == set()


def of_client():
    """Files of the client's package, which has nothing else of this one."""
    lines = (TOP / 'debian/nova-fairness-client.install').read_text()
    patterns = [line.split()[0] for line in lines.splitlines()]
    return {
        str(path.relative_to(TOP))
        for pattern in patterns
        for path in TOP.glob(pattern)
    }


def test_the_package_of_the_client_has_all_that_the_client_imports():
    packed = {path for path in of_client() if path.endswith('.py')}
    assert 'nova_fairness/client/plugin.py' in packed
    for path in packed:
        for name in changed.imported(ast.parse((TOP / path).read_text())):
            module = f'{name.replace(".", "/")}.py'
            if name.startswith('nova_fairness.') and (TOP / module).exists():
                assert module in packed, path


def test_every_source_file_carries_the_licence():
    paths = [
        path
        for folder in FOLDERS
        for path in (TOP / folder).rglob('*')
        if path.suffix in ('.py', '.sh') and path.stat().st_size
    ]
    assert paths
    bare = [path for path in paths if LICENCE not in path.read_text()[:400]]
    assert bare == []


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=TOP, capture_output=True, check=False, text=True
    )


@pytest.mark.parametrize('script', SCRIPTS)
def test_scripts_are_executable_and_stop_at_errors(script):
    assert os.access(TOP / script, os.X_OK)
    assert 'set -euo pipefail' in (TOP / script).read_text(encoding='utf-8')
    assert run('bash', '-n', script).stderr == ''


@pytest.mark.parametrize('script', SCRIPTS)
def test_scripts_explain_themselves_without_installing_anything(script):
    answer = run(script, '--help')
    assert answer.returncode == 0
    assert answer.stdout.startswith('Usage: tools/')


def test_an_unknown_option_is_named():
    answer = run('tools/test.sh', '--no-such-thing')
    assert answer.returncode == 1
    assert 'unknown option: --no-such-thing' in answer.stderr


# As a terminal starts it: what runs these tests may ignore Ctrl-C.
BASH = ('env', '--default-signal=INT', 'bash', '-c')


def sourced(commands: str) -> subprocess.CompletedProcess[str]:
    return run(*BASH, f'set -euo pipefail; . tools/environment.sh; {commands}')


def test_a_failed_step_is_named_and_ends_the_run(tmp_path):
    answer = sourced(
        f'LOGS={tmp_path}; broken() {{ echo because; false; echo on; }};'
        ' step "first one" true; step "second one" broken; echo never'
    )
    assert answer.returncode == 1
    assert 'step "second one" failed' in answer.stderr
    assert 'because' in answer.stdout
    assert 'never' not in answer.stdout
    assert 'on\n' not in (tmp_path / 'second-one.log').read_text()


def test_a_module_is_translated_once_not_by_each_program(monkeypatch):
    monkeypatch.setenv('PYTHONDONTWRITEBYTECODE', '1')
    answer = sourced('python3 -c "import sys; print(sys.dont_write_bytecode)"')
    assert answer.stdout == 'False\n'


def test_ctrl_c_ends_all_parallel_steps(tmp_path):
    heard = 'import signal; assert signal.getsignal(2) is not signal.SIG_IGN'
    answer = sourced(
        f'LOGS={tmp_path}; STEPS={tmp_path}/steps;'
        f" one() {{ step 'one' python3 -c '{heard}'; }};"
        ' two() { step "two" false; };'
        ' side_by_side two one; echo never'
    )
    assert answer.returncode == 1
    assert 'never' not in answer.stdout
    ended = [
        line.split('\t')
        for line in (tmp_path / 'steps').open(encoding='utf-8')
    ]
    assert {(name, code.strip()) for name, _, code in ended} == {
        ('one', '0'),
        ('two', '1'),
    }


def test_an_interrupted_run_ends_parallel_processes(tmp_path):
    begun = tmp_path / 'begun'
    mark = f"import time; open('{begun}', 'w').close(); time.sleep(600)"
    script = (
        f'. tools/environment.sh; LOGS={tmp_path};'
        f' one() {{ step one python3 -c "{mark}"; }}; side_by_side one'
    )
    shell = subprocess.Popen([*BASH, script], cwd=TOP)
    try:
        assert processes.wait_until(begun.exists, 60)
        assert running_with(mark)
        shell.terminate()
        assert shell.wait(60) != 0
        assert running_with(mark) == []
    finally:
        shell.kill()


def running_with(word: str) -> list[str]:
    """Command lines of programs that have a word."""
    found = []
    for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
        with contextlib.suppress(OSError):
            words = path.read_text(errors='replace').split('\0')
            found += [words[0]] if word in words else []
    return found


REPORT = """
<testsuites><testsuite>
<testcase classname="a.b" name="good" time="1.5"/>
<testcase classname="a.b" name="bad" time="0.5"><failure>x</failure></testcase>
</testsuite></testsuites>
"""


def test_a_run_and_its_end_are_written_down(tmp_path):
    (tmp_path / 'unit-tests.xml').write_text(REPORT)
    (tmp_path / 'steps').write_text('unit tests\t2.5\t1\n')
    file = tmp_path / 'full.json'
    answer = run(
        sys.executable, 'tools/outcome.py', str(tmp_path), '1', str(file)
    )
    assert answer.returncode == 0, answer.stderr
    told = json.loads(file.read_text())
    assert told['exit_code'] == 1
    assert told['counts'] == {'failed': 1, 'passed': 1}
    assert told['steps'] == [
        {'name': 'unit tests', 'seconds': 2.5, 'exit_code': 1}
    ]
    assert told['tests'] == {
        'unit-tests': {
            'a.b::good': {'outcome': 'passed', 'seconds': 1.5},
            'a.b::bad': {'outcome': 'failed', 'seconds': 0.5},
        }
    }


TRIED_AGAIN = """
import pathlib

def test_a_second_try_helps(tmp_path):
    mark = pathlib.Path(__file__).with_suffix('.tried')
    tried = mark.exists()
    mark.touch()
    assert tried, 'the machine stood still'

def test_no_try_helps():
    assert False, 'it is broken'
"""


def test_a_test_that_is_tried_again_is_named(tmp_path):
    (tmp_path / 'test_it.py').write_text(TRIED_AGAIN)
    notes, file = tmp_path / 'reruns', tmp_path / 'full.json'
    words = f'-m pytest -q -p tests.conftest --reruns 1 {tmp_path}/test_it.py'
    environment = {**os.environ, 'FAIRNESS_RERUNS': str(notes)}
    environment.pop('PYTEST_XDIST_WORKER', None)
    answer = subprocess.run(
        [sys.executable, *words.split()],
        env=environment,
        cwd=TOP,
        capture_output=True,
        check=False,
        text=True,
    )
    assert '1 failed, 1 passed' in answer.stdout
    answer = run(
        sys.executable, 'tools/outcome.py', str(tmp_path), '1', str(file)
    )
    assert 'tried again: ' in answer.stdout
    told = json.loads(file.read_text())['reruns']
    assert [each['test'].split('::')[1] for each in told] == [
        'test_a_second_try_helps',
        'test_no_try_helps',
    ]
    assert 'the machine stood still' in told[0]['why']


def bindep_list(folder: pathlib.Path, profile: str) -> list[str]:
    (folder / 'bindep.txt').write_text(
        '# a comment\n'
        'always\n'
        'debian [platform:dpkg]\n'
        'fedora [platform:rpm]\n'
        'guests [platform:dpkg lab]\n'
        'either [platform:dpkg lab test]\n'
        'fedora-guests [platform:rpm lab]\n',
        encoding='utf-8',
    )
    answer = sourced(f'TOP={folder}; packages_of {profile}')
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.split()


@pytest.mark.parametrize(
    ('profile', 'expected'),
    [
        ('', ['always', 'debian']),
        ('lab', ['always', 'debian', 'guests', 'either']),
        ('test', ['always', 'debian', 'either']),
        ('other', ['always', 'debian']),
    ],
)
def test_system_packages_are_chosen_by_profile(tmp_path, profile, expected):
    assert bindep_list(tmp_path, profile) == expected


def test_the_same_python_is_asked_for_everywhere():
    project = tomllib.loads((TOP / 'pyproject.toml').read_text())
    assert section('metadata')['python_requires'] == '>=3.11'
    assert project['tool']['ruff']['target-version'] == 'py311'
    assert project['tool']['mypy']['python_version'] == '3.11'


def test_every_package_is_installed_and_checked():
    project = tomllib.loads((TOP / 'pyproject.toml').read_text())
    installed = section('files')['packages'].split()
    assert sorted(installed) == sorted(PACKAGES)
    assert sorted(project['tool']['mypy']['packages']) == sorted(PACKAGES)


def test_every_check_is_a_tox_environment():
    parser = configparser.ConfigParser()
    parser.read(TOP / 'tox.ini', encoding='utf-8')
    named = {name.partition(':')[2] for name in parser.sections()}
    checks = 'functional pep8 mypy cover docs genconfig releasenotes'
    assert set(checks.split()) <= named


@pytest.mark.parametrize(
    'page', ['README.rst', 'doc/source/install/index.rst']
)
def test_packages_to_install_first_are_those_of_bindep(page):
    wanted = [
        line.split()[0]
        for line in (TOP / 'bindep.txt').read_text('utf-8').splitlines()
        if re.search(r'\[platform:dpkg(| compile)\]', line)
    ]
    (said,) = re.findall(
        r'^ +(?:# )?apt-get install (.*python3-venv.*)$',
        (TOP / page).read_text('utf-8'),
        re.MULTILINE,
    )
    assert said.split() == wanted


def test_a_shell_in_the_cloud_has_the_tools_of_the_readme(monkeypatch):
    started = []
    running = ('r1', {'pid': 1, 'venv': '/venv'})
    monkeypatch.setattr(nova_cloud, '_running', lambda: running)
    monkeypatch.setattr(os, 'execvpe', lambda *given: started.append(given))
    nova_cloud.main(['shell', 'alice'])
    ((_, words, environment),) = started
    assert environment['OS_USERNAME'] == 'alice'
    given = {*environment, *re.findall(r'\b(\w+)=\$\(', ' '.join(words))}
    readme = (TOP / 'README.rst').read_text('utf-8')
    used = set(re.findall(r'\$([A-Z]+)', readme))
    assert used == {'TOKEN', 'NOVA'}
    assert used <= given


@pytest.mark.parametrize(
    ('words', 'said'),
    [
        (['shell', 'eve'], 'no user eve; expected one of admin, alice'),
        (['run'], 'run needs a command'),
        (['upp'], 'unknown command upp'),
    ],
)
def test_a_command_line_that_cannot_be_run_is_named(capsys, words, said):
    assert nova_cloud.main(words) == 1
    assert said in capsys.readouterr().err


def test_pages_of_a_cloud_need_horizon(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(boards, 'PYTHON', tmp_path / 'bin/python')
    assert nova_cloud.main(['up', '--dashboard']) == 1
    said = capsys.readouterr().err
    assert f'there is no Horizon in {tmp_path}' in said
    assert '"tools/nova.sh --dashboard" installs it' in said


DISTRIBUTED = 'usr/lib/python3/dist-packages'
OF_DEBIAN = {
    'nova-fairness-client': (),
    'nova-fairness-dashboard': ('nova-fairness-client',),
}
"""Packages of Debian with modules, and those of ours that they need."""


def modules_of(package):
    """Names of the modules that a package of Debian has, with their files."""
    found = {}
    listed = (TOP / f'debian/{package}.install').read_text('utf-8')
    for line in listed.splitlines():
        source, target = line.split()
        for path in TOP.glob(source):
            files = path.rglob('*.py') if path.is_dir() else [path]
            for file in files:
                place = pathlib.Path(target) / file.relative_to(path.parent)
                below = place.relative_to(DISTRIBUTED).with_suffix('')
                name = '.'.join(below.parts)
                found[name.removesuffix('.__init__')] = file
    return found


def imported(file):
    """Modules of ours that a file may import."""
    for node in ast.walk(ast.parse(file.read_text('utf-8'))):
        if isinstance(node, ast.ImportFrom) and node.module:
            if node.module.split('.')[0] in PACKAGES:
                yield from (f'{node.module}.{e.name}' for e in node.names)
        elif isinstance(node, ast.Import):
            names = [each.name for each in node.names]
            yield from (e for e in names if e.split('.')[0] in PACKAGES)


@pytest.mark.parametrize('package', OF_DEBIAN)
def test_a_package_of_debian_has_all_that_its_modules_import(package):
    own = modules_of(package)
    assert own
    known = {*own}.union(*map(modules_of, OF_DEBIAN[package]))
    missing = {
        (name, each)
        for name, file in own.items()
        for each in imported(file)
        if each not in known
    }
    assert missing == set()
