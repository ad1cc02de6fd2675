# SPDX-License-Identifier: Apache-2.0

"""Changes of a keys directory: one run at a time, whole or not at all."""

from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import dataclasses
import fcntl
import os
import pathlib
import tempfile
import time

from oslo_messaging_zmq import errors

_LOCK_S = 10.0


@contextlib.contextmanager
def locked(
    directory: pathlib.Path, timeout_s: float = _LOCK_S
) -> Iterator[None]:
    """Keep other runs from changing a keys directory.

    :raises KeysError: no such directory, or another run holds it too long.
    """
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise errors.KeysError(
            f'{directory} is no directory to keep keys in: {error.strerror}'
        ) from error
    try:
        _lock(descriptor, directory, timeout_s)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, directory: pathlib.Path, timeout_s: float) -> None:
    limit = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= limit:
                raise errors.KeysError(
                    f'{directory} is being changed by another run since '
                    f'{timeout_s:g} s'
                ) from None
            time.sleep(0.02)
        else:
            return


@dataclasses.dataclass(frozen=True, slots=True)
class NewFile:
    """A file to be written.

    :param mode: permission bits.
    """

    path: pathlib.Path
    text: str = dataclasses.field(repr=False)
    mode: int


def write(files: Sequence[NewFile]) -> None:
    """Write files of one directory: all of them or none.

    Each is replaced at once, in the order given; a file keeps its owner, a
    new one gets the owner of the directory.

    :raises KeysError: nothing was changed.
    """
    with contextlib.ExitStack() as leftovers:
        try:
            staged = [_stage(new, leftovers) for new in files]
        except OSError as error:
            raise _refusal(files[0].path.parent, error) from error
        _put_in_place(files, staged, leftovers)


def _stage(new: NewFile, leftovers: contextlib.ExitStack) -> pathlib.Path:
    """Write the text beside its place, complete and on the disk."""
    descriptor, name = tempfile.mkstemp(
        prefix=f'.{new.path.name}.', dir=new.path.parent
    )
    staged = pathlib.Path(name)
    leftovers.callback(staged.unlink, missing_ok=True)
    with os.fdopen(descriptor, 'w', encoding='utf-8') as file:
        file.write(new.text)
        file.flush()
        if os.geteuid() == 0:
            like = new.path if new.path.exists() else new.path.parent
            os.fchown(descriptor, like.stat().st_uid, like.stat().st_gid)
        os.fchmod(descriptor, new.mode)
        os.fsync(descriptor)
    return staged


def _put_in_place(
    files: Sequence[NewFile],
    staged: Sequence[pathlib.Path],
    leftovers: contextlib.ExitStack,
) -> None:
    done: list[tuple[pathlib.Path, pathlib.Path | None]] = []
    try:
        for new, ready in zip(files, staged, strict=True):
            done.append((new.path, _kept(new.path, leftovers)))
            ready.replace(new.path)
        _sync(files[0].path.parent)
    except OSError as error:
        for path, old in reversed(done):
            _put_back(path, old)
        raise _refusal(files[0].path.parent, error) from error


def _refusal(directory: pathlib.Path, error: OSError) -> errors.KeysError:
    return errors.KeysError(
        f'{directory} cannot be written, nothing was changed: {error.strerror}'
    )


def _kept(
    path: pathlib.Path, leftovers: contextlib.ExitStack
) -> pathlib.Path | None:
    """A second name of the file that is about to be replaced."""
    kept = path.with_name(f'.{path.name}.{os.getpid()}.old')
    kept.unlink(missing_ok=True)
    try:
        kept.hardlink_to(path)
    except FileNotFoundError:
        return None
    leftovers.callback(kept.unlink, missing_ok=True)
    return kept


def _put_back(path: pathlib.Path, old: pathlib.Path | None) -> None:
    with contextlib.suppress(OSError):
        if old is None:
            path.unlink()
        else:
            old.replace(path)


def _sync(directory: pathlib.Path) -> None:
    """Let the new names survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
