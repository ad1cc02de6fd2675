# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The only door to root.

Everything in :func:`write_as_root` runs in a helper process that
oslo.privsep starts as root without a single capability: the files of control
groups belong to root, and that is all it needs. It trusts nothing that it
is told. A request names a process, never a path: the helper itself looks up
which group the process is in, opens the control there, and writes only if
the process still is the one that was meant.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import errno
import os
import pathlib
import re
import shlex
import shutil
import socket
import sys
import threading

from oslo_config import cfg
from oslo_privsep import comm
from oslo_privsep import priv_context

from nova_fairness import exception
from nova_fairness.apply import groups
from nova_fairness.model import cgroup

SECTION = 'nova_fairness_privileged'
"""Configuration section with oslo.privsep's options for the helper."""

PROC = '/proc'
MOUNTINFO = '/proc/self/mountinfo'

Request = tuple[str, str, int, int]
"""Name of the control file, value, process id, its start time in ticks."""

_VALUE = re.compile('[0-9]{1,19}')
_LOCK = threading.Lock()

# A helper that is killed while a request is under way resets its socket.
# oslo.privsep's reader ends with that error and tells nobody, so that only
# the timeout shows it.
_LOST = (OSError, comm.PrivsepTimeout)

context = priv_context.PrivContext(
    __name__,
    cfg_section=SECTION,
    pypath=f'{__name__}.context',
    capabilities=[],
    timeout=3.0,
)


def prepare(config_files: Sequence[str] = ()) -> None:
    """Choose how the helper is started; call once, after configuration.

    ``helper_command`` of the section wins. Otherwise an agent that is root
    starts ``privsep-helper`` itself, so that no sudo is needed, and any other
    agent does as oslo.privsep does: ``sudo privsep-helper``.

    :param config_files: where the section is; handed to the helper too.
    """
    if config_files and 'config_file' not in cfg.CONF:
        # oslo.privsep looks only into this process's global configuration.
        cfg.CONF(
            [],
            default_config_files=list(config_files),
            default_config_dirs=[],
        )
    if os.geteuid() == 0:
        command = [_privsep_executable()]
        for config_file in config_files:
            command += ['--config-file', str(config_file)]
        cfg.CONF.set_default(
            'helper_command', shlex.join(command), group=SECTION
        )


def _privsep_executable() -> str:
    """Find the helper beside this interpreter, else in PATH."""
    beside = pathlib.Path(sys.executable).with_name('privsep-helper')
    if beside.exists():
        return str(beside)
    return shutil.which('privsep-helper') or 'privsep-helper'


def write_controls(requests: Sequence[Request]) -> list[int]:
    """Write controls of any number of VMs in one round trip.

    :returns: per request zero, or the error number of why it was not
        written: ``ESRCH``, ``ENOENT`` or ``ENODEV`` if the VM is gone.
    :raises ControlUnavailable: if the helper cannot be started or does not
        answer; then it is unknown what was written.
    """
    try:
        return _call(list(requests))
    except Exception as error:
        # privsep hands on whatever went wrong in either process, without a
        # common class.
        raise exception.ControlUnavailable(
            f'privileged helper: {type(error).__name__}: {error}; expected '
            f'[{SECTION}] helper_command to start it as root'
        ) from error


def _call(requests: list[Request]) -> list[int]:
    """Ask the helper, once more of a new one if it died.

    A signal to the whole service ends the helper before the agent has
    restored its controls. Writing a value twice does no harm.
    """
    with _LOCK:
        try:
            return list(write_as_root(requests))
        except _LOST:
            if not context.client_mode:
                raise
            _abandon()
            return list(write_as_root(requests))


def _abandon() -> None:
    """Let go of a helper that does not answer, without waiting for it.

    ``context.stop()`` waits until the helper closes its end, which a stopped
    one never does.
    """
    channel, context.channel = context.channel, None
    if channel is not None:
        with contextlib.suppress(OSError):
            channel.writer.writesock.shutdown(socket.SHUT_RDWR)


@context.entrypoint
def write_as_root(requests: Sequence[Request]) -> list[int]:
    """Check and write each request; runs in the helper.

    :returns: as :func:`write_controls`.
    """
    mounts = cgroup.mounts(pathlib.Path(MOUNTINFO).read_text('utf-8'))
    return [_write(mounts, *request) for request in requests]


def _write(
    mounts: Mapping[str, cgroup.Mount],
    name: str,
    text: str,
    pid: int,
    start_ticks: int,
) -> int:
    if name not in groups.FILES or not _VALUE.fullmatch(text):
        return errno.EINVAL
    try:
        path = groups.control_path(PROC, mounts, int(pid), name)
        # Neither created nor followed: a control is a file of the kernel.
        control = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except exception.WriteRefused:
        return errno.EPERM
    except OSError as error:
        return error.errno or errno.EIO
    return _write_if_same(control, f'{text}\n', int(pid), start_ticks)


def _write_if_same(control: int, text: str, pid: int, start_ticks: int) -> int:
    """Write unless the process ended; closes ``control``.

    The order matters: an open control stays that of its group. If the group
    goes and another of the same name comes, the write fails with ENODEV.
    """
    try:
        if groups.start_ticks(PROC, pid) != start_ticks:
            return errno.ESRCH
        os.write(control, text.encode('ascii'))
    except OSError as error:
        return error.errno or errno.EIO
    finally:
        os.close(control)
    return 0
