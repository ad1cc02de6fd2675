# SPDX-License-Identifier: Apache-2.0

"""Takes from a process that is root what it does not need, for ever."""

from collections.abc import Collection
import ctypes
import os

from oslo_privsep import capabilities

_PR_CAPBSET_READ = 23
_PR_CAPBSET_DROP = 24
_PR_GET_SECUREBITS = 27
_PR_SET_SECUREBITS = 28
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_RAISE = 2
_NOROOT, _NOROOT_LOCKED = 1, 2
_MOST = 64

_libc = ctypes.CDLL(None, use_errno=True)


def confine(kept: Collection[int]) -> None:
    """Leave this thread, and all it starts, at most some capabilities.

    A program that root starts has all capabilities of the bounding set,
    whatever its starter gave up. So these leave that set, being root no
    longer gives any, and no program that is started can have more.

    Call it in the only thread of a process, while that has CAP_SETPCAP. The
    capabilities that the process has now are not touched.

    :param kept: numbers of capabilities.
    :raises OSError: if the kernel refuses.
    """
    for number in range(_MOST):
        if number not in kept and _has_in_bounds(number):
            _prctl(_PR_CAPBSET_DROP, number)
    wanted = _NOROOT | _NOROOT_LOCKED
    present = _prctl(_PR_GET_SECUREBITS)
    if present & wanted != wanted:
        _prctl(_PR_SET_SECUREBITS, present | wanted)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def lend(lent: Collection[int]) -> None:
    """Let programs that this thread starts have capabilities of its own.

    All others are given up by this thread.

    :param lent: numbers of capabilities.
    :raises OSError: if the thread does not have them.
    """
    capabilities.drop_all_caps_except(lent, lent, lent)
    for number in lent:
        _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, number)


def _has_in_bounds(number: int) -> bool:
    # The kernel does not know all numbers, and says so with an error.
    unused = ctypes.c_ulong(0)
    given = ctypes.c_ulong(number)
    return bool(
        _libc.prctl(_PR_CAPBSET_READ, given, unused, unused, unused) == 1
    )


def _prctl(operation: int, *arguments: int) -> int:
    given = [*arguments, 0, 0, 0, 0][:4]
    result = int(_libc.prctl(operation, *map(ctypes.c_ulong, given)))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
