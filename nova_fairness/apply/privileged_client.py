# SPDX-License-Identifier: Apache-2.0

"""How a privileged process is started, asked, and let go.

Each module that has entry points for root makes one
:class:`PrivilegedClient`. The code behind it runs in a process of its own,
with the capabilities that :data:`KEPT` names and no others.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import ctypes
import os
import pathlib
import shlex
import shutil
import socket
import sys
import threading
import types
from typing import Any

from oslo_config import cfg
from oslo_privsep import capabilities
from oslo_privsep import comm
from oslo_privsep import daemon
from oslo_privsep import priv_context

from nova_fairness import exception

PROGRAM = 'nova-fairness-privileged'
"""Starts what is behind a door; see :mod:`nova_fairness.cmd.privileged`."""

KEPT: Mapping[str, tuple[int, ...]] = types.MappingProxyType(
    {
        'nova_fairness.apply.privileged.context': (),
        'nova_fairness.apply.privileged_network.context': (
            capabilities.CAP_NET_ADMIN,
        ),
    }
)
"""Capabilities that each context's process keeps, by the context's name."""

SECTION = 'nova_fairness_privileged'
NETWORK_SECTION = 'nova_fairness_privileged_network'

OPTIONS = priv_context.OPTS
"""Options of each helper, in a section of its own."""

# A helper that is killed while a request is under way resets its socket.
# oslo.privsep's reader ends with that error and tells nobody, so that only
# the timeout shows it.
_LOST = (OSError, comm.PrivsepTimeout)


class PrivilegedClient:
    """The way to the entry points of one context.

    :param context: where the entry points are; one of :data:`KEPT`.
    """

    def __init__(self, context: priv_context.PrivContext) -> None:
        self.context = context
        self.section: str = context.cfg_section
        self._lock = threading.Lock()

    def prepare(
        self, config_files: Sequence[str] = (), like: str = ''
    ) -> None:
        """Choose how the process is started; call after configuration.

        ``helper_command`` of the context's section wins. Otherwise an agent
        that is root starts :data:`PROGRAM` itself, so that no sudo is needed,
        and any other agent starts it by sudo.

        :param config_files: where the section is.
        :param like: another section whose ``helper_command`` also holds for
            this one, unless it has its own.
        """
        if config_files and 'config_file' not in cfg.CONF:
            # oslo.privsep looks only into this process's global
            # configuration.
            cfg.CONF(
                [],
                default_config_files=list(config_files),
                default_config_dirs=[],
            )
        command = cfg.CONF[like].helper_command if like else None
        if not command:
            sudo = [] if os.geteuid() == 0 else ['sudo']
            command = shlex.join([*sudo, _executable()])
        cfg.CONF.set_default('helper_command', command, group=self.section)

    def ask(self, entry_point: Callable[..., Any], *arguments: Any) -> Any:
        """Run an entry point behind the door; twice does no harm.

        A signal to the whole service ends the process before the agent has
        restored its controls; then a new one is asked once more.

        :raises ControlUnavailable: if the process cannot be started, does
            not answer, or the entry point raises; then it is unknown what
            was done.
        """
        try:
            with self._lock:
                return self._ask(entry_point, *arguments)
        except Exception as error:
            # privsep hands on whatever went wrong in either process, without
            # a common class.
            raise self._unavailable(error) from error

    def knock(self) -> None:
        """Start the process, so that the first question need not wait.

        :raises ControlUnavailable: if it cannot be started.
        """
        try:
            with self._lock:
                if self.context.client_mode and self.context.channel is None:
                    self.context.start()
        except Exception as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> exception.ControlUnavailable:
        return exception.ControlUnavailable(
            f'privileged helper: {type(error).__name__}: {error}; '
            f'expected [{self.section}] helper_command to start it as root'
        )

    def _ask(self, entry_point: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return entry_point(*arguments)
        except _LOST:
            if not self.context.client_mode:
                raise
            self._abandon()
            return entry_point(*arguments)

    def _abandon(self) -> None:
        """Let go of a process that does not answer, without waiting for it.

        ``context.stop()`` waits until the process closes its end, which a
        stopped one never does.
        """
        channel, self.context.channel = self.context.channel, None
        if channel is not None:
            with contextlib.suppress(OSError):
                channel.writer.writesock.shutdown(socket.SHUT_RDWR)


def serve(context: str, socket_path: str) -> None:
    """Become what is behind a door; returns when that runs in a child.

    :param context: one of :data:`KEPT`.
    :param socket_path: where the agent listens.
    """
    sys.argv = [
        PROGRAM,
        '--privsep_context',
        context,
        '--privsep_sock_path',
        socket_path,
    ]
    daemon.helper_main()


def _executable() -> str:
    """Find the program beside this interpreter, else in PATH."""
    beside = pathlib.Path(sys.executable).with_name(PROGRAM)
    if beside.exists():
        return str(beside)
    return shutil.which(PROGRAM) or PROGRAM


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
