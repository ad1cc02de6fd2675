# SPDX-License-Identifier: Apache-2.0

"""The files of control groups that hold weights of block I/O."""

from collections.abc import Mapping

from nova_fairness.apply.cgroup import control
from nova_fairness.apply.cgroup import files
from nova_fairness.model import cgroup
from nova_fairness.model import resources

FILES = (
    files.BLKIO_BFQ_WEIGHT,
    files.BLKIO_WEIGHT,
    files.IO_BFQ_WEIGHT,
    files.IO_WEIGHT,
)
"""In the order of preference; a record names them by their place."""


class OneFile(control.GroupControl):
    """Weights in one file."""

    kind = resources.Control.BLKIO

    def parsed(self, content: bytes) -> int:
        """The weight for all devices, in either form of the file."""
        line = content.partition(b'\n')[0].strip()
        return int(line.removeprefix(b'default').strip())


def names(mounts: Mapping[str, cgroup.Mount]) -> tuple[str, ...]:
    """Give the files that the hierarchy of the controller may have."""
    version = control.version_of(
        mounts,
        'blkio',
        'io',
        'no controller of block I/O is mounted; expected blkio in a cgroup '
        'v1 hierarchy or io in cgroup.controllers of the v2 hierarchy',
    )
    if version == 1:
        return files.BLKIO_BFQ_WEIGHT, files.BLKIO_WEIGHT
    return files.IO_BFQ_WEIGHT, files.IO_WEIGHT
