# SPDX-License-Identifier: Apache-2.0

"""Held messages are unreadable on disk: they hold tokens and passwords.

The file of keys has one key a line. The first one seals; all of them open. To
replace a key, an operator puts the new one before the old ones, messages are
sealed again, and the old keys are then taken out.
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
"""Level of compression: a message is several times smaller, and a database
writes it at least twice."""

_OPAQUE_DIGITS = 40
"""160 bits: no two names are the same by chance."""


class Sealer:
    """Seals and opens messages with the keys of a file.

    :param keys: the first one seals.
    :raises BadKeyFile: if there is none, or one is no key.
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

    def opaque(self, *parts: str) -> str:
        """A name that says nothing without the key.

        It is the same for the same parts as long as the last key of the file
        is the same.
        """
        # Sealing takes another key first; names stay until the old is gone.
        return self.proofs(*parts)[-1]

    def proofs(self, *parts: str) -> list[str]:
        """Names as :meth:`opaque` gives, one for each key of the file.

        They can be checked while the file has any of these keys.
        """
        told = msgpack.packb(_encoded(parts))
        return [
            hmac.new(key, told, hashlib.sha256).hexdigest()[:_OPAQUE_DIGITS]
            for key in self._naming_keys
        ]

    def seal(self, cast: cast_module.Cast) -> bytes:
        """Make a message unreadable.

        :raises StoreError: if its properties are not what can be written.
        """
        # The UUID inside says which row it belongs to: a sealed message
        # that was put into another row is found out.
        parts = [cast.uuid, cast.key, cast.body, dict(cast.properties)]
        try:
            packed = zlib.compress(msgpack.packb(parts), _QUICK)
        except (TypeError, ValueError, OverflowError) as error:
            raise exception.StoreError(
                f'the message {cast.uuid} cannot be written:'
                f' {type(error).__name__} in its properties'
            ) from None
        return _bytes(self._fernet.encrypt(packed))

    def open(
        self, uuid: str, method: str, received_at: float, sealed: bytes
    ) -> cast_module.Cast:
        """Make a message readable again.

        :raises SealBroken: if no key opens it, or it is another message.
        """
        try:
            packed = self._fernet.decrypt(_token(sealed))
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

    def renew(self, sealed: bytes) -> bytes:
        """Seal with the first key what any key opens.

        :raises SealBroken: if no key opens it.
        """
        try:
            return _bytes(self._fernet.rotate(_token(sealed)))
        except fernet.InvalidToken as error:
            raise exception.SealBroken('no key opens a message') from error


def read(path: pathlib.Path) -> Sealer:
    """Read the file of keys.

    :raises BadKeyFile: if it is missing, holds no keys, or can be read by
        others than its owner.
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
    """Put a new key before those of a file; the file is made if needed.

    :raises OSError: if it cannot be written.
    """
    old = path.read_text(encoding='ascii') if path.exists() else ''
    new = fernet.Fernet.generate_key().decode('ascii')
    state_file.replace(path, f'{new}\n{old}', durable=True)


def drop_old_keys(path: pathlib.Path) -> None:
    """Leave only the first key, once everything is sealed with it.

    :raises OSError: if it cannot be read or written.
    """
    state_file.replace(
        path, path.read_text(encoding='ascii').split()[0] + '\n', durable=True
    )


def _encoded(parts: Sequence[str]) -> list[bytes]:
    return [each.encode('utf-8', 'surrogatepass') for each in parts]


def _bytes(token: bytes) -> bytes:
    return base64.urlsafe_b64decode(token)


def _token(sealed: bytes) -> bytes:
    return base64.urlsafe_b64encode(sealed)
