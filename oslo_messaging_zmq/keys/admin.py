# SPDX-License-Identifier: Apache-2.0

"""What an operator does with keys; the logic of ``nova-fairness-keys``.

Every change is made under a lock and takes effect whole or not at all. No
function returns or logs a secret.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import datetime as dt
import pathlib

from oslo_messaging_zmq import errors
from oslo_messaging_zmq.keys import allow_list
from oslo_messaging_zmq.keys import curve
from oslo_messaging_zmq.keys import files
from oslo_messaging_zmq.keys import key_writing


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec='seconds')


def _list_path(directory: pathlib.Path) -> pathlib.Path:
    return directory / files.LIST_NAME


def _secret_path(directory: pathlib.Path, name: str) -> pathlib.Path:
    return directory / f'{name}{files.SUFFIX}'


def entries(directory: pathlib.Path) -> allow_list.Entries:
    """The allow-list of a directory.

    :raises KeysError: there is none, or it is broken.
    """
    return files.read_list(_list_path(directory))


def _known(directory: pathlib.Path) -> allow_list.Entries:
    """Like :func:`entries`; a list that does not exist yet is empty."""
    present = _list_path(directory).exists()
    return entries(directory) if present else ()


def _new_list(
    directory: pathlib.Path, changed: allow_list.Entries
) -> key_writing.NewFile:
    # What could not be read again would cut everybody off.
    text = allow_list.render(changed)
    allow_list.parse(text)
    return key_writing.NewFile(_list_path(directory), text, 0o644)


def _new_secret(
    directory: pathlib.Path, pair: files.Pair
) -> key_writing.NewFile:
    path = _secret_path(directory, pair.name)
    return key_writing.NewFile(path, files.pair_text(pair), 0o600)


def _new_pair(name: str) -> files.Pair:
    public, secret = curve.new_pair()
    return files.Pair(name, public, secret)


def make(directory: pathlib.Path, name: str, role: str) -> allow_list.Entry:
    """Make a key pair and allow it; make the directory if need be.

    :raises KeysError: bad name or role, or the name has a key already.
    """
    allow_list.checked_name(name)
    allow_list.checked_role(role)
    _make_directory(directory)
    with key_writing.locked(directory):
        known = _known(directory)
        if allow_list.good(known, name):
            raise errors.KeysError(
                f'{name} has a key already: rotate replaces it'
            )
        path = _secret_path(directory, name)
        if path.exists() and not _is_revoked(path, known):
            raise errors.KeysError(
                f'{path} exists, and its key is not on the allow-list: '
                'allow it, or remove the file'
            )
        pair = _new_pair(name)
        entry = allow_list.Entry(pair.public, name, role, _now())
        changed = allow_list.added(known, entry)
        key_writing.write(
            [_new_secret(directory, pair), _new_list(directory, changed)]
        )
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


def rotate(directory: pathlib.Path, name: str) -> allow_list.Entry:
    """Make a new pair for a name; its former keys stay good until revoked.

    :raises KeysError: the name has no good key.
    """
    with key_writing.locked(directory):
        known = entries(directory)
        present = allow_list.good(known, name)
        if not present:
            raise errors.KeysError(
                f'{name} has no good key to replace: expected one of '
                f'{_some_names(known)}'
            )
        pair = _new_pair(name)
        last = present[-1]
        entry = allow_list.Entry(
            pair.public, name, last.role, _now(), serves=last.serves
        )
        changed = allow_list.added(known, entry)
        # The list first: a key that nobody allows would cut its node off.
        key_writing.write(
            [_new_list(directory, changed), _new_secret(directory, pair)]
        )
    return entry


def _some_names(known: allow_list.Entries) -> str:
    names = sorted({entry.name for entry in known if not entry.revoked})
    more = f' and {len(names) - 10} more' if len(names) > 10 else ''
    return (', '.join(names[:10]) + more) or 'none, as the list is empty'


def revoke(directory: pathlib.Path, name_or_key: str) -> allow_list.Entries:
    """Revoke one key, or all keys of a name, for good.

    :returns: the entries that were revoked now.
    :raises KeysError: there is no such key that is good.
    """
    with key_writing.locked(directory):
        changed, gone = allow_list.revoked(
            entries(directory), name_or_key, _now()
        )
        key_writing.write([_new_list(directory, changed)])
    return gone


def allow(
    directory: pathlib.Path, name: str, public: str, role: str | None
) -> allow_list.Entry:
    """Allow a key that was made elsewhere.

    :param role: None for that of the name's other keys, or node.
    :raises KeysError: bad arguments, or the key is on the list already.
    """
    allow_list.checked_name(name)
    allow_list.checked_public(public)
    _make_directory(directory)
    with key_writing.locked(directory):
        known = _known(directory)
        present = allow_list.good(known, name)
        role = role or (present[-1].role if present else allow_list.ROLES[0])
        allow_list.checked_role(role)
        serves = present[-1].serves if present else ()
        entry = allow_list.Entry(public, name, role, _now(), serves=serves)
        changed = allow_list.added(known, entry)
        key_writing.write([_new_list(directory, changed)])
    return entry


def serves(
    directory: pathlib.Path, name: str, servers: Sequence[str]
) -> allow_list.Entries:
    """Say which servers the keys of a name answer for, beside their own.

    :param servers: in place of those of before; empty for none.
    :returns: the entries of the name that are good.
    :raises KeysError: the name has no good key, or a server no name.
    """
    names = allow_list.checked_servers(list(servers))
    with key_writing.locked(directory):
        changed, present = allow_list.serving(entries(directory), name, names)
        key_writing.write([_new_list(directory, changed)])
    return present


def faults(directory: pathlib.Path) -> Iterator[str]:
    """Say what is wrong with a keys directory; nothing if all is well."""
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
    pair: files.Pair,
    entry: allow_list.Entry | None,
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


def overlaps(known: allow_list.Entries) -> dict[str, int]:
    """Names with more than one good key, and how many they have.

    A rotation is under way until the operator revokes the older ones.
    """
    counts: dict[str, int] = {}
    for entry in known:
        if not entry.revoked:
            counts[entry.name] = counts.get(entry.name, 0) + 1
    return {name: n for name, n in sorted(counts.items()) if n > 1}
