# SPDX-License-Identifier: Apache-2.0

"""Whether guests can run under KVM here: found out by booting one.

A ``/dev/kvm`` that can be opened proves nothing, so the laboratory's own
guest must come up within a deadline. The answer is kept until the next boot
of the machine.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile

from fairness_lab.testbed.guests import domain
from fairness_lab.testbed.guests import image
from fairness_lab.testbed.nodes import processes
from nova_fairness import exception

KVM = 'kvm'
TCG = 'tcg'
QEMU = 'qemu-system-x86_64'

_DEVICE = pathlib.Path('/dev/kvm')
_READY = 'guest ready'


def choose(
    boot: image.Image, cache: pathlib.Path, patience_s: float = 20.0
) -> str:
    """Give :data:`KVM` if the guest boots with it, else :data:`TCG`.

    :param boot: what the guest boots from.
    :param cache: directory in which the answer is kept.
    :param patience_s: seconds that the guest may take.
    :raises LabEnvironmentError: if there is no QEMU.
    """
    if not shutil.which(QEMU):
        raise exception.LabEnvironmentError(
            f'the laboratory needs {QEMU}, which is not installed'
        )
    if not os.access(_DEVICE, os.R_OK | os.W_OK):
        return TCG
    known = cache / f'accelerator-{processes.boot_id()}'
    if known.is_file():
        return known.read_text()
    answer = KVM if _boots(boot, patience_s) else TCG
    for old in cache.glob('accelerator-*'):
        old.unlink()
    known.write_text(answer)
    return answer


def _boots(boot: image.Image, patience_s: float) -> bool:
    with tempfile.TemporaryDirectory() as directory:
        console = pathlib.Path(directory) / 'console'
        console.touch()
        command = [
            *(QEMU, '-accel', 'kvm', '-nodefaults', '-display', 'none'),
            *('-machine', 'pc', '-m', str(domain.SMALLEST_MEMORY_MIB)),
            *('-kernel', str(boot.kernel), '-initrd', str(boot.initrd)),
            *('-append', domain.COMMAND_LINE, '-no-reboot'),
            *('-serial', f'file:{console}', '-serial', 'null'),
        ]
        guest = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            processes.wait_until(
                lambda: (
                    _READY in console.read_text(errors='replace')
                    or guest.poll() is not None
                ),
                patience_s,
                step_s=0.1,
            )
            return _READY in console.read_text(errors='replace')
        finally:
            guest.kill()
            guest.wait()
