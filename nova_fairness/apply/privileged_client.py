# SPDX-License-Identifier: Apache-2.0

"""Starts, calls and ends the privileged helper processes.

Each module with entry points for root creates one :class:`PrivilegedClient`.
The entry points run in a separate process with the capabilities in
:data:`KEPT` only.
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
"""Program that runs as a helper; see :mod:`nova_fairness.cmd.privileged`."""

KEPT: Mapping[str, tuple[int, ...]] = types.MappingProxyType(
    {
        'nova_fairness.apply.privileged.context': (),
        'nova_fairness.apply.privileged_network.context': (
            capabilities.CAP_NET_ADMIN,
        ),
    }
)
"""Capabilities of each context's process, by the context's name."""

SECTION = 'nova_fairness_privileged'
NETWORK_SECTION = 'nova_fairness_privileged_network'

OPTIONS = priv_context.OPTS
"""Options of each helper, in its own section."""

# A helper that is killed while a request is under way resets its socket.
# oslo.privsep's reader ends with that error and tells nobody, so that only
# the timeout shows it.
_CONNECTION_ERRORS = (OSError, comm.PrivsepTimeout)


class PrivilegedClient:
    """Calls the entry points of one helper process.

    :param context: privilege context of the entry points; its name is a key
        of :data:`KEPT`.
    """

    def __init__(self, context: priv_context.PrivContext) -> None:
        self.context = context
        self.section: str = context.cfg_section
        self._lock = threading.Lock()

    def prepare(
        self, config_files: Sequence[str] = (), like: str = ''
    ) -> None:
        """Set how the process is started; call after configuration.

        ``helper_command`` of the context's section has precedence. Otherwise
        an agent that is root starts :data:`PROGRAM` itself, and any other
        agent starts it by sudo.

        :param config_files: with the section.
        :param like: another section whose ``helper_command`` also applies
            here, unless this section has its own.
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

    def call(self, entry_point: Callable[..., Any], *arguments: Any) -> Any:
        """Run an entry point in the helper; entry points may run twice.

        A signal to the whole service ends the helper before the agent has
        restored its controls. Then a new helper gets the call again.

        :raises ControlUnavailable: if the helper cannot be started, does not
            answer, or the entry point raises; then it is unknown what was
            done.
        """
        try:
            with self._lock:
                return self._call_entry_point(entry_point, *arguments)
        except Exception as error:
            # privsep hands on whatever went wrong in either process, without
            # a common class.
            raise self._unavailable(error) from error

    def start(self) -> None:
        """Start the helper, so that the first call need not wait.

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

    def _call_entry_point(
        self, entry_point: Callable[..., Any], *arguments: Any
    ) -> Any:
        try:
            return entry_point(*arguments)
        except _CONNECTION_ERRORS:
            if not self.context.client_mode:
                raise
            self._disconnect()
            return entry_point(*arguments)

    def _disconnect(self) -> None:
        """Close the connection to a helper that does not answer.

        ``context.stop()`` would wait until the helper closes its end, which a
        stopped process never does.
        """
        channel, self.context.channel = self.context.channel, None
        if channel is not None:
            with contextlib.suppress(OSError):
                channel.writer.writesock.shutdown(socket.SHUT_RDWR)


def serve(context: str, socket_path: str) -> None:
    """Run as the helper of a context; returns when the helper runs in a child.

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
    """Return the path of the program: beside this interpreter, else in
    PATH.
    """
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
_MAX_CAPABILITY = 64

_libc = ctypes.CDLL(None, use_errno=True)


def drop_capabilities(kept: Collection[int]) -> None:
    """Limit this thread and its child processes to some capabilities.

    A program that root starts gets all capabilities of the bounding set. So
    the others are removed from that set, being root no longer grants any, and
    no child can get more. Call it in the only thread of a process that has
    CAP_SETPCAP. The present capabilities of the process do not change.

    :param kept: numbers of capabilities.
    :raises OSError: if the kernel refuses.
    """
    for number in range(_MAX_CAPABILITY):
        if number not in kept and _has_in_bounds(number):
            _prctl(_PR_CAPBSET_DROP, number)
    wanted = _NOROOT | _NOROOT_LOCKED
    present = _prctl(_PR_GET_SECUREBITS)
    if present & wanted != wanted:
        _prctl(_PR_SET_SECUREBITS, present | wanted)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def pass_capabilities(lent: Collection[int]) -> None:
    """Pass capabilities of this thread to the programs that it starts.

    The thread drops all its other capabilities.

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
