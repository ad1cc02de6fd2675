# SPDX-License-Identifier: Apache-2.0

"""Operations of operators on keys; the logic of ``nova-fairness-keys``.

Every change is made under a lock, completely or not at all. No function
returns or logs a secret.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import dataclasses
import datetime as dt
import fcntl
import os
import pathlib
import tempfile
import time

from oslo_messaging_zmq import errors
from oslo_messaging_zmq.keys import allow_list
from oslo_messaging_zmq.keys import files
from oslo_messaging_zmq.keys import keyring
from oslo_messaging_zmq.keys import signing

_LOCK_S = 10.0


@contextlib.contextmanager
def locked(
    directory: pathlib.Path, timeout_s: float = _LOCK_S
) -> Iterator[None]:
    """Lock a keys directory against other runs, as a context manager.

    :raises KeysError: if there is no such directory, or another run holds the
        lock too long.
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
                    f'{directory} is being changed by another run; waited '
                    f'{timeout_s:g} s for it'
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

    Each is replaced as a whole, in the given sequence. A file keeps its owner;
    a new one gets the owner of the directory.

    :raises KeysError: if a file cannot be written; then nothing was changed.
    """
    with contextlib.ExitStack() as leftovers:
        try:
            staged = [_write_temporary(new, leftovers) for new in files]
        except OSError as error:
            raise _write_error(files[0].path.parent, error) from error
        _replace_files(files, staged, leftovers)


def _write_temporary(
    new: NewFile, leftovers: contextlib.ExitStack
) -> pathlib.Path:
    """Write a temporary file durably beside its final path."""
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


def _replace_files(
    files: Sequence[NewFile],
    staged: Sequence[pathlib.Path],
    leftovers: contextlib.ExitStack,
) -> None:
    done: list[tuple[pathlib.Path, pathlib.Path | None]] = []
    try:
        for new, ready in zip(files, staged, strict=True):
            done.append((new.path, _link_old_file(new.path, leftovers)))
            ready.replace(new.path)
        _sync_directory(files[0].path.parent)
    except OSError as error:
        for path, old in reversed(done):
            _restore_file(path, old)
        raise _write_error(files[0].path.parent, error) from error


def _write_error(directory: pathlib.Path, error: OSError) -> errors.KeysError:
    return errors.KeysError(
        f'{directory} cannot be written, nothing was changed: {error.strerror}'
    )


def _link_old_file(
    path: pathlib.Path, leftovers: contextlib.ExitStack
) -> pathlib.Path | None:
    """Link the old file to a second name before it is replaced."""
    kept = path.with_name(f'.{path.name}.{os.getpid()}.old')
    kept.unlink(missing_ok=True)
    try:
        kept.hardlink_to(path)
    except FileNotFoundError:
        return None
    leftovers.callback(kept.unlink, missing_ok=True)
    return kept


def _restore_file(path: pathlib.Path, old: pathlib.Path | None) -> None:
    with contextlib.suppress(OSError):
        if old is None:
            path.unlink()
        else:
            old.replace(path)


def _sync_directory(directory: pathlib.Path) -> None:
    """Force the directory entries to the disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec='seconds')


def _list_path(directory: pathlib.Path) -> pathlib.Path:
    return directory / files.LIST_NAME


def _secret_path(directory: pathlib.Path, name: str) -> pathlib.Path:
    return directory / f'{name}{files.SUFFIX}'


def entries(directory: pathlib.Path) -> allow_list.Entries:
    """Read the allow-list of a directory.

    :raises KeysError: if it is missing or invalid.
    """
    return files.read_list(_list_path(directory))


def _entries_or_none(directory: pathlib.Path) -> allow_list.Entries:
    """Read the allow-list; return an empty one if it does not exist yet."""
    present = _list_path(directory).exists()
    return entries(directory) if present else ()


def _new_list(directory: pathlib.Path, changed: allow_list.Entries) -> NewFile:
    # What could not be read again would cut everybody off.
    text = allow_list.render(changed)
    allow_list.parse(text)
    return NewFile(_list_path(directory), text, 0o644)


def _new_secret(directory: pathlib.Path, pair: files.KeyPair) -> NewFile:
    path = _secret_path(directory, pair.name)
    return NewFile(path, files.pair_text(pair), 0o600)


def _new_pair(name: str, role: str) -> files.KeyPair:
    public, secret = keyring.new_pair()
    signs = role == allow_list.CONTROLLER
    return files.KeyPair(
        name, public, secret, signing.new_pair()[1] if signs else b''
    )


def make(
    directory: pathlib.Path, name: str, role: str
) -> allow_list.AllowedKey:
    """Create a key pair and allow it; create the directory if it is missing.

    :raises KeysError: if name or role is invalid, or the name already has a
        key.
    """
    allow_list.checked_name(name)
    allow_list.checked_role(role)
    _make_directory(directory)
    with locked(directory):
        known = _entries_or_none(directory)
        if allow_list.valid_keys(known, name):
            raise errors.KeysError(
                f'{name} has a key already: rotate replaces it'
            )
        path = _secret_path(directory, name)
        if path.exists() and not _is_revoked(path, known):
            raise errors.KeysError(
                f'{path} exists, and its key is not on the allow-list: '
                'allow it, or remove the file'
            )
        pair = _new_pair(name, role)
        entry = allow_list.AllowedKey(
            pair.public, name, role, _now(), signs=pair.signs
        )
        changed = allow_list.with_added_key(known, entry)
        write([_new_secret(directory, pair), _new_list(directory, changed)])
    return entry


def _make_directory(directory: pathlib.Path) -> None:
    try:
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise errors.KeysError(
            f'{directory} cannot be made: {error.strerror}'
        ) from error


def _is_revoked(path: pathlib.Path, known: allow_list.Entries) -> bool:
    public = files.read_pair(path).public
    return any(entry.revoked for entry in known if entry.public == public)


def rotate(directory: pathlib.Path, name: str) -> allow_list.AllowedKey:
    """Create a new pair for a name; its former keys stay valid until revoked.

    :raises KeysError: if the name has no valid key.
    """
    with locked(directory):
        known = entries(directory)
        present = allow_list.valid_keys(known, name)
        if not present:
            raise errors.KeysError(
                f'{name} has no good key to replace: expected one of '
                f'{_some_names(known)}'
            )
        last = present[-1]
        pair = _new_pair(name, last.role)
        entry = allow_list.AllowedKey(
            pair.public,
            name,
            last.role,
            _now(),
            serves=last.serves,
            signs=pair.signs,
        )
        changed = allow_list.with_added_key(known, entry)
        # The list first: a key that nobody allows would cut its node off.
        write([_new_list(directory, changed), _new_secret(directory, pair)])
    return entry


def _some_names(known: allow_list.Entries) -> str:
    names = sorted({entry.name for entry in known if not entry.revoked})
    more = f' and {len(names) - 10} more' if len(names) > 10 else ''
    return (', '.join(names[:10]) + more) or 'none, as the list is empty'


def revoke(directory: pathlib.Path, name_or_key: str) -> allow_list.Entries:
    """Revoke one key, or all keys of a name, for ever.

    :returns: the entries that were revoked now.
    :raises KeysError: if there is no such valid key.
    """
    with locked(directory):
        changed, gone = allow_list.with_revoked_keys(
            entries(directory), name_or_key, _now()
        )
        write([_new_list(directory, changed)])
    return gone


def allow(
    directory: pathlib.Path,
    name: str,
    public: str,
    role: str | None,
    signs: str = '',
) -> allow_list.AllowedKey:
    """Add a key that was created elsewhere to the allow-list.

    :param role: ``None`` for the role of the name's other keys, or node.
    :param signs: public key of its owner's signatures; empty for none.
    :raises KeysError: if an argument is invalid, or the key is on the list.
    """
    allow_list.checked_name(name)
    allow_list.checked_public(public)
    if signs:
        allow_list.checked_public(signs)
    _make_directory(directory)
    with locked(directory):
        known = _entries_or_none(directory)
        present = allow_list.valid_keys(known, name)
        role = role or (present[-1].role if present else allow_list.ROLES[0])
        allow_list.checked_role(role)
        serves = present[-1].serves if present else ()
        entry = allow_list.AllowedKey(
            public, name, role, _now(), serves=serves, signs=signs
        )
        changed = allow_list.with_added_key(known, entry)
        write([_new_list(directory, changed)])
    return entry


def serves(
    directory: pathlib.Path, name: str, servers: Sequence[str]
) -> allow_list.Entries:
    """Set the additional server names of a name's keys.

    :param servers: replaces the earlier list; empty for none.
    :returns: the valid entries of the name.
    :raises KeysError: if the name has no valid key, or a server name is
        invalid.
    """
    names = allow_list.checked_servers(list(servers))
    with locked(directory):
        changed, present = allow_list.with_server_names(
            entries(directory), name, names
        )
        write([_new_list(directory, changed)])
    return present


def faults(directory: pathlib.Path) -> Iterator[str]:
    """Yield all errors of a keys directory."""
    try:
        known = {entry.public: entry for entry in entries(directory)}
    except errors.KeysError as error:
        yield str(error)
        known = {}
    paths = files.secret_paths(directory)
    if not paths:
        yield f'{directory} holds no secret: expected a file NAME.secret'
    for path in paths:
        try:
            pair = files.read_pair(path)
        except errors.KeysError as error:
            yield str(error)
            continue
        yield from _pair_faults(path, pair, known.get(pair.public))


def _pair_faults(
    path: pathlib.Path,
    pair: files.KeyPair,
    entry: allow_list.AllowedKey | None,
) -> Iterator[str]:
    if path.name != f'{pair.name}{files.SUFFIX}':
        yield f'{path} holds the key of {pair.name}: expected another name'
    if entry is None:
        yield f'{path}: its key {pair.public} is not on the allow-list'
    elif entry.revoked:
        yield f'{path}: its key was revoked at {entry.revoked_at}'
    elif entry.name != pair.name:
        yield (
            f'{path}: its key is on the allow-list as {entry.name}: '
            f'expected {pair.name}'
        )
    elif entry.signs != pair.signs:
        yield (
            f'{path}: it signs with {pair.signs or "no key"}, and the '
            f'allow-list has {entry.signs or "none"}'
        )


def overlaps(known: allow_list.Entries) -> dict[str, int]:
    """Return the names with more than one valid key, and their numbers.

    A rotation is incomplete until the operator revokes the older keys.
    """
    counts: dict[str, int] = {}
    for entry in known:
        if not entry.revoked:
            counts[entry.name] = counts.get(entry.name, 0) + 1
    return {name: n for name, n in sorted(counts.items()) if n > 1}
