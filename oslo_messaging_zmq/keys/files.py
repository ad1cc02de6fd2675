# SPDX-License-Identifier: Apache-2.0

"""The files of a keys directory, read only if others cannot change them.

``allowed.json``
    the allow-list, equal on all hosts (:mod:`.allow_list`);
``NAME.secret``
    a key pair, mode 0600, readable by its owner only.
"""

from collections.abc import Callable
import dataclasses
import json
import os
import pathlib
import stat

import zmq

from oslo_messaging_zmq import errors
from oslo_messaging_zmq.keys import allow_list
from oslo_messaging_zmq.keys import signing

LIST_NAME = 'allowed.json'
SUFFIX = '.secret'
VERSION = 1
_SIGNING = 'signing'
_MOST_BYTES = 16 << 20

Signature = tuple[int, int, int] | None
_Check = Callable[[pathlib.Path, os.stat_result], None]


@dataclasses.dataclass(frozen=True, slots=True)
class KeyPair:
    """A key pair.

    :param name: of its owner.
    :param public: in Z85.
    :param secret: in Z85; never shown.
    :param signing_key: secret key for signatures, in Z85; never shown, and
        empty if there is none.
    """

    name: str
    public: str
    secret: bytes = dataclasses.field(repr=False)
    signing_key: bytes = dataclasses.field(default=b'', repr=False)

    @property
    def signs(self) -> str:
        """The public key in Z85 of the signatures; empty if it cannot sign."""
        return signing.public_of(self.signing_key) if self.signing_key else ''


def signature(path: pathlib.Path) -> Signature:
    """Return a value that changes with a file; ``None`` without a file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def own_secret_path(path: pathlib.Path) -> pathlib.Path:
    """Return the path of the only secret of a keys directory.

    :param path: the directory, or the secret's file itself.
    :raises KeysError: if there is none, or more than one.
    """
    if not path.is_dir():
        return path
    found = secret_paths(path)
    if len(found) == 1:
        return found[0]
    if not found:
        raise errors.KeysError(
            f'{path} holds no secret: expected one file NAME{SUFFIX}, which '
            'nova-fairness-keys make NAME makes'
        )
    raise errors.KeysError(
        f'{path} holds {len(found)} secrets '
        f'({", ".join(each.name for each in found[:5])}): expected one, or '
        'the path of one of them'
    )


def secret_paths(directory: pathlib.Path) -> list[pathlib.Path]:
    """Return the secrets of a directory, sorted."""
    return sorted(directory.glob(f'*{SUFFIX}'))


def read_pair(path: pathlib.Path) -> KeyPair:
    """Read a key pair that no other user can read.

    :raises KeysError: if it is missing, invalid or readable by others.
    """
    text = _read_checked(path, _check_private)
    try:
        document = json.loads(text)
        pair = KeyPair(
            name=allow_list.checked_name(document['name']),
            public=allow_list.checked_public(document['public']),
            secret=document['secret'].encode('ascii'),
            signing_key=document.get(_SIGNING, '').encode('ascii'),
        )
        broken = (
            document['version'] != VERSION
            or not allow_list.is_key(document['secret'])
            or zmq.curve_public(pair.secret) != pair.public.encode()
            or not allow_list.is_key(document.get(_SIGNING, pair.public))
        )
    except (
        errors.KeysError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
    ):
        # The error would show the text, which is secret.
        broken = True
    if broken:
        raise errors.KeysError(
            f'{path} is no key pair: expected what nova-fairness-keys makes'
        )
    return pair


def read_list(path: pathlib.Path) -> allow_list.Entries:
    """Read an allow-list that no other user can write.

    :raises KeysError: if it is missing, invalid or writable by others.
    """
    text = _read_checked(path, _check_not_writable)
    _check_not_writable(path.parent, path.parent.stat())
    try:
        return allow_list.parse(text)
    except errors.KeysError as error:
        raise errors.KeysError(f'allow-list {path}: {error}') from error


def _read_checked(path: pathlib.Path, check: _Check) -> str:
    try:
        with path.open(encoding='utf-8') as file:
            # Of the open file: the path may be another one a moment later.
            check(path, os.fstat(file.fileno()))
            return file.read(_MOST_BYTES)
    except OSError as error:
        raise errors.KeysError(
            f'{path} cannot be read: {error.strerror}'
        ) from error
    except UnicodeDecodeError as error:
        raise errors.KeysError(
            f'{path} cannot be read: it is no text'
        ) from error


def _check_private(path: pathlib.Path, found: os.stat_result) -> None:
    if found.st_mode & 0o077:
        raise errors.KeysError(
            f'{path} can be read by others (mode '
            f'{stat.S_IMODE(found.st_mode):04o}): expected 0600; if others '
            'may have read it, rotate the key'
        )
    if found.st_uid not in (0, os.geteuid()):
        raise errors.KeysError(
            f'{path} belongs to user {found.st_uid}: expected '
            f'{os.geteuid()}, who is to use it'
        )


def _check_not_writable(path: pathlib.Path, found: os.stat_result) -> None:
    if found.st_mode & 0o022:
        raise errors.KeysError(
            f'{path} can be changed by others (mode '
            f'{stat.S_IMODE(found.st_mode):04o}): expected that only its '
            'owner can'
        )


def pair_text(pair: KeyPair) -> str:
    """Return the content of the file of a pair."""
    document = {
        'version': VERSION,
        'name': pair.name,
        'public': pair.public,
        'secret': pair.secret.decode('ascii'),
    }
    if pair.signing_key:
        document[_SIGNING] = pair.signing_key.decode('ascii')
    return json.dumps(document, indent=2) + '\n'
