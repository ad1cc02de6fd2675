# SPDX-License-Identifier: Apache-2.0

"""The archive format of initial RAM disks (cpio, new ASCII): pure."""

from collections.abc import Iterable
import dataclasses
import pathlib

_DIRECTORY = 0o040755
_FILE = 0o100644
_PROGRAM = 0o100755


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """A file of an archive.

    :ivar path: relative, no leading slash.
    :ivar content: its bytes.
    :ivar executable: whether it can be run.
    """

    path: str
    content: bytes
    executable: bool = False


def cpio(entries: Iterable[Entry]) -> bytes:
    """Pack files, and the directories that they are in.

    Same files, same bytes: no times and no owners are kept.

    :param entries: with different paths.
    :returns: the archive.
    """
    parts: list[bytes] = []
    made: set[str] = set()
    for entry in entries:
        for parent in _parents(entry.path):
            if parent not in made:
                made.add(parent)
                parts.append(_record(len(parts), parent, _DIRECTORY, b''))
        mode = _PROGRAM if entry.executable else _FILE
        parts.append(_record(len(parts), entry.path, mode, entry.content))
    parts.append(_record(0, 'TRAILER!!!', 0, b''))
    return b''.join(parts)


def _parents(path: str) -> list[str]:
    parents = map(str, reversed(pathlib.PurePosixPath(path).parents))
    return [parent for parent in parents if parent != '.']


def _record(number: int, path: str, mode: int, content: bytes) -> bytes:
    name = path.encode() + b'\0'
    fields = (
        number + 1,
        mode,
        0,
        0,
        1,
        0,
        len(content),
        0,
        0,
        0,
        0,
        len(name),
        0,
    )
    head = b'070701' + b''.join(b'%08X' % field for field in fields)
    return _padded(head + name) + _padded(content)


def _padded(part: bytes) -> bytes:
    return part + b'\0' * (-len(part) % 4)
