# SPDX-License-Identifier: Apache-2.0

"""``nova-fairness-status effect``: measures whether CPU weights have an effect
on this machine.

Two control groups with inner groups, as libvirt creates them for VMs, compete
for one CPU. Their tasks sleep and wake like threads of VCPUs, and the weights
are written repeatedly, as by an agent.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import NoReturn

from nova_fairness.apply.cgroup import control
from nova_fairness.apply.cgroup import files
from nova_fairness.model import cgroup

DURATION_S = 5.0

NAME = 'nova-fairness-effect'
"""Control group that contains all other groups of the test."""

EXPECTED = {'heavy': 0.25, 'light': 0.75}
"""Part of the CPU that each group should get, by group."""

TOLERANCE = 0.05
"""Largest difference of parts that sleeping tasks and a short time explain."""

INNER = {
    'emulator': (0.0005, 0.004),
    'vcpu0': (0.008, 0.001),
    'vcpu1': (0.030, 0.001),
}
"""By inner group: seconds of CPU time that its task uses before it sleeps, and
seconds that it sleeps.
"""

_CHILDREN = 'cgroup.subtree_control'
_REWRITE_S = 0.05
_GRACE_S = 30.0
_TASK = """
import os, sys, time
work_s, sleep_s, duration_s = map(float, sys.argv[1:4])
os.sched_setaffinity(0, {int(sys.argv[4])})
with open(sys.argv[5], 'w') as procs:
    procs.write('0')
sys.stdin.readline()
began, end = time.process_time(), time.monotonic() + duration_s
while time.monotonic() < end:
    until = time.process_time() + work_s
    while time.process_time() < until and time.monotonic() < end:
        pass
    time.sleep(sleep_s)
print(time.process_time() - began)
"""


@dataclasses.dataclass(frozen=True, slots=True)
class CpuHierarchy:
    """The hierarchy of control groups with CPU weights.

    :ivar top: directory in which the groups are created.
    :ivar name: name of the file with a weight.
    """

    top: pathlib.Path
    name: str

    @property
    def is_unified(self) -> bool:
        """Whether this is the hierarchy of version 2."""
        return self.name == files.CPU_WEIGHT

    def weight(self, share: float) -> int:
        """Return the weight that gives one of two groups a part of the CPU."""
        return round(files.FILES[self.name].default * len(EXPECTED) * share)


def run(duration_s: float = DURATION_S) -> int:
    """Measure the effect, and print parts and a verdict.

    :returns: 0 if the groups got the expected parts, 1 if the parts are
        between expected and equal, 2 if the weights have no effect.
    :raises OSError: if the groups cannot be created.
    :raises ControlUnavailable: if this host has no CPU controller.
    """
    kept = signal.signal(signal.SIGTERM, _end)
    try:
        got = measure(_hierarchy(), duration_s)
    finally:
        signal.signal(signal.SIGTERM, kept)
    lines = [
        f'{name}: expected {share:.0%}, got {got[name]:.1%} of one CPU'
        for name, share in EXPECTED.items()
    ]
    code, verdict = verdict_of(got['light'])
    lines.append(f'Linux {os.uname().release}: {verdict}')
    sys.stdout.write('\n'.join(lines) + '\n')
    return code


def verdict_of(light: float) -> tuple[int, str]:
    """Compare the part of the CPU that the light group got with the expected
    part.

    :returns: exit code, and a sentence for people.
    """
    off = light - EXPECTED['light']
    if abs(off) <= TOLERANCE:
        return 0, 'CPU weights work'
    if light <= 0.5 + TOLERANCE:
        return 2, (
            'CPU weights have no effect; see the check Kernel of '
            'nova-fairness-status upgrade check'
        )
    return 1, (
        f'CPU weights work in part: the light group deviates by {off:+.1%}; '
        'repeat the command while the host is not busy, then see the check '
        'Kernel of nova-fairness-status upgrade check'
    )


def measure(hierarchy: CpuHierarchy, duration_s: float) -> dict[str, float]:
    """Let two groups compete for one CPU.

    :returns: part of the CPU time that each group got, by name.
    """
    with contextlib.ExitStack() as ends:
        groups = ends.enter_context(_groups(hierarchy))
        tasks = [
            (name, ends.enter_context(_task(group / each, duration_s)))
            for name, group in groups.items()
            for each in INNER
        ]
        for _, task in tasks:
            _start(task)
        _rewrite(hierarchy, groups, duration_s)
        used = dict.fromkeys(groups, 0.0)
        for name, task in tasks:
            used[name] += float(task.communicate(timeout=_GRACE_S)[0])
    total = sum(used.values())
    return {name: each / total for name, each in used.items()}


def _hierarchy() -> CpuHierarchy:
    mounts = cgroup.mounts(pathlib.Path('/proc/self/mountinfo').read_bytes())
    _, name = control.CpuShares().availability()
    place = mounts[files.FILES[name].controller].path
    return CpuHierarchy(pathlib.Path(place), name)


@contextlib.contextmanager
def _groups(hierarchy: CpuHierarchy) -> Iterator[dict[str, pathlib.Path]]:
    """Create the control groups, and remove them at the end.

    Groups of an earlier run are removed if they have no task.
    """
    top = hierarchy.top / NAME
    outer = [top, *(top / name for name in EXPECTED)]
    inner = [top / name / each for name in EXPECTED for each in INNER]
    _remove([*outer, *inner])
    with _delegated(hierarchy):
        try:
            for group in (*outer, *inner):
                group.mkdir()
                if hierarchy.is_unified and group in outer:
                    (group / _CHILDREN).write_text('+cpu')
            yield {name: top / name for name in EXPECTED}
        finally:
            _remove([*outer, *inner])


def _remove(groups: list[pathlib.Path]) -> None:
    for group in reversed(groups):
        with contextlib.suppress(OSError):
            group.rmdir()


@contextlib.contextmanager
def _delegated(hierarchy: CpuHierarchy) -> Iterator[None]:
    """Enable weights of groups below the top; version 1 always has them."""
    path = hierarchy.top / _CHILDREN
    if not hierarchy.is_unified or 'cpu' in path.read_text('ascii').split():
        yield
        return
    path.write_text('+cpu')
    try:
        yield
    finally:
        # Other programs may use the controller by now.
        with contextlib.suppress(OSError):
            path.write_text('-cpu')


@contextlib.contextmanager
def _task(
    group: pathlib.Path, duration_s: float
) -> Iterator[subprocess.Popen[str]]:
    """Start a task that joins a group and waits for a line."""
    work_s, sleep_s = INNER[group.name]
    numbers = (work_s, sleep_s, duration_s, max(os.sched_getaffinity(0)))
    command = [sys.executable, '-I', '-S', '-c', _TASK]
    task = subprocess.Popen(
        [*command, *map(str, numbers), str(group / 'cgroup.procs')],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # Only this program gets Ctrl-C; it ends its tasks.
        start_new_session=True,
    )
    try:
        yield task
    finally:
        with task:
            task.kill()


def _start(task: subprocess.Popen[str]) -> None:
    if task.stdin is not None:
        task.stdin.write('\n')
        task.stdin.flush()


def _rewrite(
    hierarchy: CpuHierarchy,
    groups: Mapping[str, pathlib.Path],
    duration_s: float,
) -> None:
    """Write the weights repeatedly until the time has passed."""
    end = time.monotonic() + duration_s
    one_more = 0
    while time.monotonic() < end:
        for name, group in groups.items():
            weight = hierarchy.weight(EXPECTED[name]) + one_more
            (group / hierarchy.name).write_text(str(weight))
        one_more = 1 - one_more
        time.sleep(_REWRITE_S)


def _end(number: int, frame: object) -> NoReturn:
    del frame
    raise SystemExit(128 + number)
