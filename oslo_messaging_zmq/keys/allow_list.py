# SPDX-License-Identifier: Apache-2.0

"""The allow-list: public keys that may connect, with names and roles.

All functions are pure. The file is JSON with one key per line, equal on all
nodes, and contains no secret.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import contextlib
import dataclasses
import datetime as dt
import json
import re
import string
import struct
from typing import Any

from zmq.utils import z85

from oslo_messaging_zmq import errors

_KEY_LENGTH = 40
"""Number of characters of a key of 32 bytes."""

_ALPHABET = frozenset(
    string.ascii_letters + string.digits + '.-:+=^!/*?&<>()[]{}@%$#'
)

VERSION = 1
CONTROLLER = 'controller'
ROLES = ('node', CONTROLLER)
MOST_KEYS = 50000
_NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9._-]{0,252}')
_SERVER = re.compile(r'\S{1,255}')
_FIELDS = frozenset({'name', 'role', 'public', 'created', 'revoked'})
_SERVES = 'serves'
_SIGNS = 'signs'


@dataclasses.dataclass(frozen=True, slots=True)
class AllowedKey:
    """One public key.

    :param public: in Z85.
    :param name: of its owner, which is also the server name that the key is
        valid for.
    :param role: one of :data:`ROLES`.
    :param created: time when it was added, ISO 8601 in UTC.
    :param revoked_at: time of the revocation, ISO 8601 in UTC; empty while it
        is valid.
    :param serves: additional server names that the key is valid for.
    :param signs: public key in Z85 of its owner's signatures; empty if the
        owner cannot sign.
    """

    public: str
    name: str
    role: str
    created: str = ''
    revoked_at: str = ''
    serves: tuple[str, ...] = ()
    signs: str = ''

    @property
    def revoked(self) -> bool:
        """Whether the key is revoked."""
        return bool(self.revoked_at)

    def answers_for(self, server: str) -> bool:
        """Check whether the key is valid for a server name."""
        return server == self.name or server in self.serves


Entries = tuple[AllowedKey, ...]


def is_key(text: object) -> bool:
    """Check whether a value is a key in Z85."""
    if not isinstance(text, str) or len(text) != _KEY_LENGTH:
        return False
    if not _ALPHABET.issuperset(text):
        return False
    # Five characters can say more than four bytes can hold.
    with contextlib.suppress(struct.error, ValueError):
        return len(z85.decode(text.encode('ascii'))) == 32
    return False


def checked_name(name: object) -> str:
    """Return a valid name.

    :raises KeysError: if it is invalid.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise errors.KeysError(
            f'{_shortened(name)} is no name: expected letters, digits, dots, '
            'hyphens and underscores, at most 253, a letter or digit first'
        )
    return name


def checked_role(role: object) -> str:
    """Return a valid role.

    :raises KeysError: if it is unknown.
    """
    if role not in ROLES:
        raise errors.KeysError(
            f'{_shortened(role)} is no role: expected {" or ".join(ROLES)}'
        )
    return str(role)


def checked_public(public: object) -> str:
    """Return a valid public key.

    :raises KeysError: if it is invalid.
    """
    if not is_key(public):
        raise errors.KeysError(
            f'{_shortened(public)} is no public key: expected 40 characters '
            'of Z85'
        )
    return str(public)


def checked_servers(names: object) -> tuple[str, ...]:
    """Return valid server names without repetitions.

    :raises KeysError: if one is invalid.
    """
    if not isinstance(names, list | tuple):
        raise errors.KeysError(f'{_shortened(names)} is no list of servers')
    for name in names:
        if not (isinstance(name, str) and _SERVER.fullmatch(name)):
            raise errors.KeysError(
                f'{_shortened(name)} is no name of a server: expected 1 to '
                '255 '
                'characters without space'
            )
    return tuple(dict.fromkeys(names))


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f'{text[:57]}...'


def parse(text: str) -> Entries:
    """Parse an allow-list.

    :returns: entries in the sequence of the file.
    :raises KeysError: if it is invalid; the message names the entry.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise errors.KeysError(f'the content is not JSON: {error}') from error
    if not isinstance(document, dict) or not isinstance(
        document.get('keys'), list
    ):
        raise errors.KeysError(
            'expected an object with "version" and a list "keys"'
        )
    if document.get('version') != VERSION:
        raise errors.KeysError(
            f'the list has version {_shortened(document.get("version"))}: '
            f'expected {VERSION}'
        )
    if len(document['keys']) > MOST_KEYS:
        raise errors.KeysError(
            f'the list has {len(document["keys"])} keys: expected at most '
            f'{MOST_KEYS}'
        )
    return _unique(_parse_entries(document['keys']))


def _parse_entries(items: list[Any]) -> Iterable[AllowedKey]:
    for number, item in enumerate(items, 1):
        try:
            yield _parse_entry(item)
        except errors.KeysError as error:
            raise errors.KeysError(f'key {number}: {error}') from error


def _parse_entry(item: Any) -> AllowedKey:
    more = {_SERVES, _SIGNS}
    if not isinstance(item, Mapping) or set(item) - more != _FIELDS:
        raise errors.KeysError(
            f'expected an object with {", ".join(sorted(_FIELDS))}; '
            f'optional are {_SERVES} and {_SIGNS}, and nothing else'
        )
    return AllowedKey(
        public=checked_public(item['public']),
        name=checked_name(item['name']),
        role=checked_role(item['role']),
        created=_checked_time(item['created']),
        revoked_at=''
        if item['revoked'] is None
        else _checked_time(item['revoked']),
        serves=checked_servers(item.get(_SERVES, ())),
        signs=checked_public(item[_SIGNS]) if _SIGNS in item else '',
    )


def _checked_time(value: object) -> str:
    try:
        moment = dt.datetime.fromisoformat(str(value))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise errors.KeysError(
            f'{_shortened(value)} is no time: expected one like '
            '2026-01-31T12:00:00+00:00'
        )
    return str(value)


def _unique(entries: Iterable[AllowedKey]) -> Entries:
    found: dict[str, AllowedKey] = {}
    for entry in entries:
        if entry.public in found:
            raise errors.KeysError(
                f'the key of {entry.name} is there twice: {entry.public}'
            )
        found[entry.public] = entry
    return tuple(found.values())


def render(entries: Entries) -> str:
    """Return an allow-list as text, one key per line."""
    lines = [f'    {json.dumps(_entry_as_json(entry))}' for entry in entries]
    keys = '[\n' + ',\n'.join(lines) + '\n  ]' if lines else '[]'
    return f'{{\n  "version": {VERSION},\n  "keys": {keys}\n}}\n'


def _entry_as_json(entry: AllowedKey) -> dict[str, Any]:
    item: dict[str, Any] = {
        'name': entry.name,
        'role': entry.role,
        'public': entry.public,
        'created': entry.created,
        'revoked': entry.revoked_at or None,
    }
    # Not in every list: programs of before refuse what they do not know.
    if entry.serves:
        item[_SERVES] = list(entry.serves)
    if entry.signs:
        item[_SIGNS] = entry.signs
    return item


def valid_keys(entries: Entries, name: str) -> Entries:
    """Return the keys of a name that are not revoked, oldest first."""
    return tuple(e for e in entries if e.name == name and not e.revoked)


def with_added_key(entries: Entries, new: AllowedKey) -> Entries:
    """Return the list with a new key.

    :raises KeysError: if the key is on the list, or the name has another role.
    """
    for entry in entries:
        if entry.public == new.public:
            state = 'was revoked for good' if entry.revoked else 'is there'
            raise errors.KeysError(
                f'{new.public} {state} as key of {entry.name}: expected a '
                'new key'
            )
    roles = {entry.role for entry in valid_keys(entries, new.name)}
    if roles - {new.role}:
        raise errors.KeysError(
            f'{new.name} is a {"".join(roles - {new.role})}: revoke its keys '
            f'before it becomes a {new.role}'
        )
    return (*entries, new)


def with_revoked_keys(
    entries: Entries, name_or_key: str, moment: str
) -> tuple[Entries, Entries]:
    """Revoke one key, or all keys of a name.

    :param moment: time of the revocation, ISO 8601.
    :returns: the new list, and the entries that were revoked now.
    :raises KeysError: if there is no such name or valid key.
    """
    chosen = [e for e in entries if name_or_key in (e.name, e.public)]
    if not chosen:
        raise errors.KeysError(
            f'neither a name nor a key of the allow-list: {name_or_key}'
        )
    if all(entry.revoked for entry in chosen):
        raise errors.KeysError(f'the key is revoked already: {name_or_key}')
    changed = {
        entry.public: dataclasses.replace(entry, revoked_at=moment)
        for entry in chosen
        if not entry.revoked
    }
    return (
        tuple(changed.get(e.public, e) for e in entries),
        tuple(changed.values()),
    )


def with_server_names(
    entries: Entries, name: str, servers: tuple[str, ...]
) -> tuple[Entries, Entries]:
    """Set the additional server names of a name's valid keys.

    :param servers: replaces the earlier names.
    :returns: the new list, and the valid entries of the name.
    :raises KeysError: if the name has no valid key.
    """
    if not valid_keys(entries, name):
        raise errors.KeysError(f'{name} has no good key')
    changed = tuple(
        dataclasses.replace(entry, serves=servers)
        if entry.name == name and not entry.revoked
        else entry
        for entry in entries
    )
    return changed, valid_keys(changed, name)
