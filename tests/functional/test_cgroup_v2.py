# SPDX-License-Identifier: Apache-2.0

"""Control groups of version 2 alone, as on a host of today.

The machine in which all of this runs is described in
``doc/source/contributor/cgroup-v2.rst``. Whatever fails inside is a failure
here, by the same name; a machine that cannot be had is one too.
"""

import collections
import contextlib
import dataclasses
import os
import pathlib
import shlex
import sys
from xml.etree import ElementTree as ET

import pytest

from fairness_lab.testbed.guests import image as lab_image
from tests.fixtures import effort
from tests.fixtures.v2_guest import image
from tests.fixtures.v2_guest import machine

TIMEOUT_S = 2100
"""For broken code only, beside guests that take all CPUs."""

pytestmark = [
    pytest.mark.real,
    pytest.mark.beside,
    pytest.mark.timeout(TIMEOUT_S),
]

INSIDE = 'tests/functional/inside_v2'
WITH_VMS = (
    # Before any VM runs: systemd that is reloaded writes its own weights over
    # those of all scopes.
    f'{INSIDE}/check_watch_notice.py',
    f'{INSIDE}/check_scopes.py',
    f'{INSIDE}/check_agent.py',
    f'{INSIDE}/check_memory.py',
)

WITH_PROCESSES = (
    'tests/functional/test_cgroup_hierarchies.py',
    'tests/functional/test_memory_disk_real.py',
    f'{INSIDE}/check_disk.py',
)
LONG = frozenset(
    {f'{INSIDE}/check_watch_notice.py', f'{INSIDE}/check_agent.py'}
)
"""Minutes each. Quick tests show most of it: ``test_watch_notice.py`` without
systemd, ``check_memory.py`` with an agent."""

SUITES = [
    pytest.param(each, marks=[pytest.mark.slow] if each in LONG else [])
    for each in (*WITH_VMS, *WITH_PROCESSES)
]


@pytest.fixture(scope='module')
def guest():
    with machine.running(disks=machine.DISKS) as made:
        yield made


@dataclasses.dataclass
class Report:
    """How all suites went inside.

    :ivar done: the end of pytest.
    :ivar results: by file, what became of each test: '' if it passed.
    """

    done: machine.Done
    results: dict[str, dict[str, str]]


@pytest.fixture(scope='module')
def report(guest, request):
    """Run all suites, on both CPUs, since Python is slow inside."""
    is_short = 'not slow' in request.config.option.markexpr
    paths = [guest.exchange / f'{name}.xml' for name in ('vms', 'processes')]
    reruns = guest.exchange / 'reruns'
    first, second = (
        shlex.join(
            [
                *(sys.executable, '-m', 'pytest', '-q', '--timeout=1300'),
                *('-p', 'pytest_timeout', '-p', 'no:cacheprovider'),
                # The suites run once: no test outside tries one again.
                *('-p', 'pytest_rerunfailures', '--reruns', '1'),
                *(('-m', 'not slow') if is_short else ()),
                f'--junitxml={path}',
                *(each for each in suites if not (is_short and each in LONG)),
            ]
        )
        for path, suites in zip(paths, (WITH_VMS, WITH_PROCESSES), strict=True)
    )
    done = guest.run(
        [
            *('sh', '-c', f'{second} & {first}; wait'),
        ],
        timeout_s=TIMEOUT_S - 60,
        # What is installed beside takes longer to load than to run.
        PYTEST_DISABLE_PLUGIN_AUTOLOAD='1',
        EVENTLET_NO_GREENDNS='yes',
        **{effort.RERUNS: str(reruns)},
    )
    pass_on(reruns)
    results = collections.defaultdict(dict)
    for case in [case for path in paths for case in cases(path)]:
        said = [f'{child.tag}: {child.text}' for child in bad(case)]
        file = case.get('classname').replace('.', '/') + '.py'
        results[file][case.get('name')] = '\n'.join(said)
    return Report(done, results)


def pass_on(reruns):
    """Note tests that were tried again inside as those outside."""
    path = os.environ.get(effort.RERUNS)
    if path and reruns.exists():
        with pathlib.Path(path).open('a') as file:
            file.write(reruns.read_text())


def cases(path):
    """Tests that a report is about; none if there is no report."""
    return ET.parse(path).iter('testcase') if path.exists() else ()


def bad(case):
    """Parts of a test's report that say it did not pass."""
    return [
        child for child in case if child.tag in ('failure', 'error', 'skipped')
    ]


@pytest.mark.parametrize('suite', SUITES)
def test_each_suite_passes_inside_the_v2_machine(report, suite):
    results = report.results[suite]
    assert results, report.done.output[-4000:]
    failed = {name: said for name, said in results.items() if said}
    assert not failed, '\n\n'.join(
        f'{name}\n{said}' for name, said in failed.items()
    )


def test_the_hierarchy_is_version_2_alone_with_all_controllers(guest):
    mounts = guest.run(['cat', '/proc/mounts'])
    kinds = [line.split()[2] for line in mounts.output.splitlines()]
    assert kinds.count('cgroup2') == 1
    assert 'cgroup' not in kinds
    root = guest.run(['cat', '/sys/fs/cgroup/cgroup.subtree_control'])
    assert {'cpu', 'cpuset', 'io', 'memory'} <= set(root.output.split())


@pytest.mark.parametrize(
    ('script', 'code'), [('exit 0', 0), ('exit 3', 3), ('kill -9 $$', -9)]
)
def test_the_machine_returns_exit_codes(guest, script, code):
    assert guest.run(['sh', '-c', script]).code == code


def test_the_machine_returns_output_and_files_only(guest, tmp_path):
    kept, lost = guest.exchange / 'kept', tmp_path / 'lost'
    script = f'echo one; echo two >&2; date >{kept}; mkdir -p {tmp_path}'
    done = guest.run(['sh', '-c', f'{script}; date >{lost}'])
    assert done.output == 'one\ntwo\n'
    assert kept.read_text()
    assert not lost.exists()


def test_an_unknown_command_is_named(guest):
    done = guest.run(['no-such-command'])
    assert done.code == 127
    assert 'no-such-command' in done.output


def test_a_command_that_takes_too_long_is_killed_with_its_children(guest):
    with pytest.raises(machine.CommandTookTooLong, match='begun'):
        guest.run(
            ['sh', '-c', 'echo begun; sleep 61234 & sleep 61234'], timeout_s=2
        )
    assert guest.run(['pgrep', '-f', 'sleep 61234']).code == 1


GOES = f"""
ip link set lo up
ip address add 169.254.169.254/32 dev lo
mkdir -p /tmp/www/openstack/latest
echo '{{"meta": {{"fairness:leaves_at": "2026-01-01T03:00:00Z"}}}}' \
    > /tmp/www/openstack/latest/meta_data.json
{sys.executable} -m http.server -d /tmp/www -b 169.254.169.254 80 &
export EVERY_S=0 LOOK_S=0.2 WHEN_DONE='systemctl poweroff --force'
exec examples/preemptible/watch-notice true
"""


def test_a_guest_shuts_itself_down_when_asked(guest):
    # The last that is done with this machine.
    with pytest.raises(machine.GuestFailed, match='Power down'):
        guest.run(['sh', '-c', GOES], timeout_s=300)


def test_a_machine_that_does_not_boot_leaves_nothing(tmp_path):
    boot = image.ensure(lab_image.default_cache())
    with pytest.raises(machine.GuestFailed, match='does not answer'):
        machine.Machine(tmp_path, boot).start(patience_s=0.5)
    assert not processes_that_name(tmp_path)


def processes_that_name(path):
    found = []
    for line in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
        with contextlib.suppress(OSError):
            if str(path).encode() in line.read_bytes():
                found.append(line.parent.name)
    return found
