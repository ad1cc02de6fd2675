# SPDX-License-Identifier: Apache-2.0

"""Encryption of held messages: they contain tokens and passwords.

The key file has one key per line. The first key seals; every key opens. To
replace a key, an operator puts the new key before the old ones, seals messages
again, and then removes the old keys.
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
"""160 bits: two names are never equal by chance."""


class Sealer:
    """Seals and opens messages with keys.

    :param keys: keys; the first one seals.
    :raises BadKeyFile: if there is no key, or one is not valid.
    """

    def __init__(self, keys: tuple[str, ...]) -> None:
        try:
            made = [fernet.Fernet(key) for key in keys]
            self._fernet = fernet.MultiFernet(made)
        except ValueError as error:
            raise exception.BadKeyFile(
                'keys are needed, each of 32 bytes in URL-safe base64, one a'
                f' line; got {wording.counted(len(keys), "line")}'
            ) from error
        self._naming_keys = [
            hmac.digest(key.encode(), b'opaque names', hashlib.sha256)
            for key in keys
        ]

    def opaque_name(self, *parts: str) -> str:
        """A name that reveals nothing without the key.

        Equal parts have equal names as long as the last key of the file stays.
        """
        # A new key comes first; the last key, and so names, change when it is
        # removed.
        return self.opaque_names(*parts)[-1]

    def opaque_names(self, *parts: str) -> list[str]:
        """Names like that of :meth:`opaque_name`, one for each key of the file.

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
                f'the message {cast.uuid} cannot be written:'
                f' {type(error).__name__} in its properties'
            ) from None
        return _decode_token(self._fernet.encrypt(packed))

    def unseal(
        self, uuid: str, method: str, received_at: float, sealed: bytes
    ) -> cast_module.Cast:
        """Decrypt a message.

        :raises SealBroken: if no key opens it, or it belongs to another row.
        """
        try:
            packed = self._fernet.decrypt(_encode_token(sealed))
        except fernet.InvalidToken as error:
            raise exception.SealBroken(
                f'none of the keys opens the message {uuid}'
            ) from error
        parts = msgpack.unpackb(zlib.decompress(packed))
        inside, key, body, properties = parts
        if inside != uuid:
            raise exception.SealBroken(
                f'the message stored as {uuid} is another one'
            )
        return cast_module.Cast(
            uuid, method, received_at, key, body, properties
        )

    def reseal(self, sealed: bytes) -> bytes:
        """Encrypt again, with the first key, a message that any key opens.

        :raises SealBroken: if no key opens it.
        """
        try:
            return _decode_token(self._fernet.rotate(_encode_token(sealed)))
        except fernet.InvalidToken as error:
            raise exception.SealBroken('no key opens a message') from error


def read_key_file(path: pathlib.Path) -> Sealer:
    """Read the key file.

    :raises BadKeyFile: if it is missing, has no valid keys, or others than its
        owner can read it.
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        lines = path.read_text(encoding='ascii').split()
    except (OSError, ValueError) as error:
        raise exception.BadKeyFile(f'{path} cannot be read: {error}') from None
    if mode & 0o077:
        raise exception.BadKeyFile(
            f'{path} must be for its owner only (0600), it is {mode:04o}'
        )
    try:
        return Sealer(tuple(lines))
    except exception.BadKeyFile as error:
        raise exception.BadKeyFile(f'{path}: {error}') from error


def add_key(path: pathlib.Path) -> None:
    """Put a new key before the keys of a file; the file is created if needed.

    :raises OSError: if the file cannot be written.
    """
    old = path.read_text(encoding='ascii') if path.exists() else ''
    new = fernet.Fernet.generate_key().decode('ascii')
    state_file.replace(path, f'{new}\n{old}', durable=True)


def remove_old_keys(path: pathlib.Path) -> None:
    """Keep only the first key, once it seals all messages.

    :raises OSError: if the file cannot be read or written.
    """
    state_file.replace(
        path, path.read_text(encoding='ascii').split()[0] + '\n', durable=True
    )


def _encode_parts(parts: Sequence[str]) -> list[bytes]:
    return [each.encode('utf-8', 'surrogatepass') for each in parts]


def _decode_token(token: bytes) -> bytes:
    return base64.urlsafe_b64decode(token)


def _encode_token(sealed: bytes) -> bytes:
    return base64.urlsafe_b64encode(sealed)
