# SPDX-License-Identifier: Apache-2.0

"""Rules about kernels whose CPU weights are unreliable."""

import re

_RELEASE = re.compile(r'(\d+)\.(\d+)(?:\.(\d+))?')

REPAIRED = {(6, 18): 45}
"""First stable release with 101f3498b4bd, which reverts 6d71a9c61604."""

UNKNOWN = frozenset({(6, 6), *((6, minor) for minor in range(12, 18))})
"""Series with 6d71a9c61604, or with a backport. Only some of their kernels
have the revert, and the version does not show it.
"""

HONOUR_WEIGHTS = frozenset({'flatcg', 'cidland'})
"""Schedulers of sched_ext that read ``cpu.weight``."""


def placement_fault(release: str) -> str:
    """The fault of a kernel in the use of CPU weights, as a text.

    A kernel with 6d71a9c61604 places a running group wrongly each time its
    weight changes.

    :param release: as ``uname -r`` prints it.
    :returns: empty if no fault is known.

    >>> placement_fault('6.18.45-generic')
    ''
    """
    series, patch = _parse_release(release)
    if patch >= REPAIRED.get(series, 0):
        return ''
    first = f'{series[0]}.{series[1]}.{REPAIRED[series]}'
    return (
        f'Linux {release} places a running group wrongly when its CPU weight '
        f'changes, so VMs may get less than their share; expected Linux '
        f'{first} or later, or a kernel with the commit 101f3498b4bd'
    )


def may_have_fault(release: str) -> bool:
    """Return whether the version is not sufficient to know if the kernel has
    the fault.
    """
    return _parse_release(release)[0] in UNKNOWN


def scheduler_fault(state: str, ops: str) -> str:
    """Return a text if a scheduler of sched_ext runs that may ignore CPU
    weights.

    :param state: content of ``/sys/kernel/sched_ext/state``.
    :param ops: content of ``/sys/kernel/sched_ext/root/ops``.
    :returns: empty if none runs, or if it is known to read weights.

    >>> scheduler_fault('enabled', 'flatcg')
    ''
    """
    name = ops.strip() or 'without a name'
    if state.strip() != 'enabled' or name.partition('_')[0] in HONOUR_WEIGHTS:
        return ''
    return (
        f'the sched_ext scheduler {name} runs, and is not known to read CPU '
        'weights: VMs get CPU time without regard to them; stop it on this '
        'host'
    )


def _parse_release(release: str) -> tuple[tuple[int, int], int]:
    """Return the series and the number of a stable release, ``(0, 0)`` if it
    has none.
    """
    found = _RELEASE.match(release)
    if found is None:
        return (0, 0), 0
    return (int(found[1]), int(found[2])), int(found[3] or 0)
