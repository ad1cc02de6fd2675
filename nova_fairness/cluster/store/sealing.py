# SPDX-License-Identifier: Apache-2.0

"""Encryption of stored messages, because they contain tokens and passwords.

The key file has one key per line. The first key encrypts; every key decrypts.
To replace a key, an operator puts the new key before the old ones, encrypts
all messages again, and then removes the old keys.
"""

import base64
from collections.abc import Sequence
import hashlib
import hmac
import pathlib
import stat
import zlib

from cryptography import fernet
import msgpack

from nova_fairness import exception
from nova_fairness.model import cast as cast_module
from nova_fairness.model import wording
from nova_fairness.runtime import state_file

_QUICK = 1
"""Level of compression: it makes messages several times smaller, and a
database writes each at least twice.
"""

_OPAQUE_DIGITS = 40
"""Length of a pseudonym in hexadecimal digits (160 bits): two names are
never equal by chance.
"""


class Sealer:
    """Encrypts and decrypts messages with keys.

    :param keys: keys; the first one encrypts.
    :raises BadKeyFile: if there is no key, or one is not valid.
    """

    def __init__(self, keys: tuple[str, ...]) -> None:
        try:
            made = [fernet.Fernet(key) for key in keys]
            self._fernet = fernet.MultiFernet(made)
        except ValueError as error:
            raise exception.BadKeyFile(
                'each line must be a key of 32 bytes in URL-safe base64, and'
                ' at least one line is needed; got'
                f' {wording.counted(len(keys), "line")}'
            ) from error
        self._naming_keys = [
            hmac.digest(key.encode(), b'opaque names', hashlib.sha256)
            for key in keys
        ]

    def pseudonym(self, *parts: str) -> str:
        """Return a name that reveals nothing about its parts without the key.

        Equal parts have equal names until the last key of the file changes.
        """
        # A new key comes first; the last key, and so names, change when it is
        # removed.
        return self.pseudonyms(*parts)[-1]

    def pseudonyms(self, *parts: str) -> list[str]:
        """Return one pseudonym for each key of the file; see
        :meth:`pseudonym`.

        A name can be verified while the file has its key.
        """
        told = msgpack.packb(_encode_parts(parts))
        return [
            hmac.new(key, told, hashlib.sha256).hexdigest()[:_OPAQUE_DIGITS]
            for key in self._naming_keys
        ]

    def seal(self, cast: cast_module.Cast) -> bytes:
        """Encrypt a message.

        :raises StoreError: if its properties cannot be serialized.
        """
        # The UUID inside names the row of the message: this reveals a sealed
        # message that was moved to another row.
        parts = [cast.uuid, cast.key, cast.body, dict(cast.properties)]
        try:
            packed = zlib.compress(msgpack.packb(parts), _QUICK)
        except (TypeError, ValueError, OverflowError) as error:
            raise exception.StoreError(
                f'message {cast.uuid} cannot be stored: its properties cannot'
                f' be serialized: {type(error).__name__}'
            ) from None
        return _decode_token(self._fernet.encrypt(packed))

    def unseal(
        self, uuid: str, method: str, received_at: float, sealed: bytes
    ) -> cast_module.Cast:
        """Decrypt a message.

        :raises SealBroken: if no key decrypts it, or it belongs to another
            row.
        """
        try:
            packed = self._fernet.decrypt(_encode_token(sealed))
        except fernet.InvalidToken as error:
            raise exception.SealBroken(
                f'message {uuid} cannot be decrypted: the key file lacks its'
                ' key; add that key to the end of the key file'
            ) from error
        parts = msgpack.unpackb(zlib.decompress(packed))
        inside, key, body, properties = parts
        if inside != uuid:
            raise exception.SealBroken(
                f'message {uuid} is not used: its row contains another message'
            )
        return cast_module.Cast(
            uuid, method, received_at, key, body, properties
        )

    def reseal(self, sealed: bytes) -> bytes:
        """Encrypt an encrypted message again, with the first key.

        :raises SealBroken: if no key decrypts it.
        """
        try:
            return _decode_token(self._fernet.rotate(_encode_token(sealed)))
        except fernet.InvalidToken as error:
            raise exception.SealBroken(
                'a message cannot be decrypted: the key file lacks its key'
            ) from error


def read_key_file(path: pathlib.Path) -> Sealer:
    """Read the key file, and return a sealer with its keys.

    :raises BadKeyFile: if the file is missing, has no valid keys, or users
        other than its owner can read it.
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        lines = path.read_text(encoding='ascii').split()
    except (OSError, ValueError) as error:
        raise exception.BadKeyFile(f'{path} cannot be read: {error}') from None
    if mode & 0o077:
        raise exception.BadKeyFile(
            f'{path} has mode {mode:04o}: users other than its owner can read'
            ' the keys; set mode 0600'
        )
    try:
        return Sealer(tuple(lines))
    except exception.BadKeyFile as error:
        raise exception.BadKeyFile(f'{path}: {error}') from error


def add_key(path: pathlib.Path) -> None:
    """Put a new key before the keys of a file; the file is created if it is
    missing.

    :raises OSError: if the file cannot be written.
    """
    old = path.read_text(encoding='ascii') if path.exists() else ''
    new = fernet.Fernet.generate_key().decode('ascii')
    state_file.replace(path, f'{new}\n{old}', durable=True)


def remove_old_keys(path: pathlib.Path) -> None:
    """Remove all keys except the first one, after it encrypts all messages.

    :raises OSError: if the file cannot be read or written.
    """
    state_file.replace(
        path, path.read_text(encoding='ascii').split()[0] + '\n', durable=True
    )


def _encode_parts(parts: Sequence[str]) -> list[bytes]:
    """Return texts as UTF-8; half surrogate pairs are allowed."""
    return [each.encode('utf-8', 'surrogatepass') for each in parts]


def _decode_token(token: bytes) -> bytes:
    """Return the bytes of a base64 token of fernet."""
    return base64.urlsafe_b64decode(token)


def _encode_token(sealed: bytes) -> bytes:
    """Return the base64 token of fernet for stored bytes."""
    return base64.urlsafe_b64encode(sealed)
