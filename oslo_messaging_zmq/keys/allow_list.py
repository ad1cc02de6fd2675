# SPDX-License-Identifier: Apache-2.0

"""The allow-list: public keys that may talk, their names and roles.

Everything here turns text and values into values. The file is JSON with one
key per line, the same on every node, and holds nothing secret.
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
"""Characters of a key of 32 bytes."""

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
    :param name: whose it is: the name of the server that it answers for.
    :param role: one of :data:`ROLES`.
    :param created: when it was put on the list, ISO 8601 in UTC.
    :param revoked_at: when it was revoked, ISO 8601 in UTC; '' while it is
        good.
    :param serves: names of further servers that it answers for.
    :param signs: public key in Z85 of its owner's signatures; '' if they
        cannot sign.
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
        """Whether the key is no longer good."""
        return bool(self.revoked_at)

    def answers_for(self, server: str) -> bool:
        """Tell whether its owner may be the server of a name."""
        return server == self.name or server in self.serves


Entries = tuple[AllowedKey, ...]


def is_key(text: object) -> bool:
    """Whether something is a key in Z85."""
    if not isinstance(text, str) or len(text) != _KEY_LENGTH:
        return False
    if not _ALPHABET.issuperset(text):
        return False
    # Five characters can say more than four bytes can hold.
    with contextlib.suppress(struct.error, ValueError):
        return len(z85.decode(text.encode('ascii'))) == 32
    return False


def checked_name(name: object) -> str:
    """A name, checked.

    :raises KeysError: it cannot.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise errors.KeysError(
            f'{_short(name)} is no name: expected letters, digits, dots, '
            'hyphens and underscores, at most 253, a letter or digit first'
        )
    return name


def checked_role(role: object) -> str:
    """A role, checked.

    :raises KeysError: there is none.
    """
    if role not in ROLES:
        raise errors.KeysError(
            f'{_short(role)} is no role: expected {" or ".join(ROLES)}'
        )
    return str(role)


def checked_public(public: object) -> str:
    """A public key, checked.

    :raises KeysError: it cannot.
    """
    if not is_key(public):
        raise errors.KeysError(
            f'{_short(public)} is no public key: expected 40 characters of Z85'
        )
    return str(public)


def checked_servers(names: object) -> tuple[str, ...]:
    """Names of servers, each once, checked.

    :raises KeysError: they cannot.
    """
    if not isinstance(names, list | tuple):
        raise errors.KeysError(f'{_short(names)} is no list of servers')
    for name in names:
        if not (isinstance(name, str) and _SERVER.fullmatch(name)):
            raise errors.KeysError(
                f'{_short(name)} is no name of a server: expected 1 to 255 '
                'characters without space'
            )
    return tuple(dict.fromkeys(names))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f'{text[:57]}...'


def parse(text: str) -> Entries:
    """Read an allow-list.

    :returns: entries in the order of the file.
    :raises KeysError: not such a list; the message says which entry.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise errors.KeysError(f'it is not JSON: {error}') from error
    if not isinstance(document, dict) or not isinstance(
        document.get('keys'), list
    ):
        raise errors.KeysError(
            'expected an object with "version" and a list "keys"'
        )
    if document.get('version') != VERSION:
        raise errors.KeysError(
            f'it has version {_short(document.get("version"))}: '
            f'expected {VERSION}'
        )
    if len(document['keys']) > MOST_KEYS:
        raise errors.KeysError(
            f'it has {len(document["keys"])} keys: at most {MOST_KEYS} '
            'are expected'
        )
    return _unique(_numbered(document['keys']))


def _numbered(items: list[Any]) -> Iterable[AllowedKey]:
    for number, item in enumerate(items, 1):
        try:
            yield _entry(item)
        except errors.KeysError as error:
            raise errors.KeysError(f'key {number}: {error}') from error


def _entry(item: Any) -> AllowedKey:
    more = {_SERVES, _SIGNS}
    if not isinstance(item, Mapping) or set(item) - more != _FIELDS:
        raise errors.KeysError(
            f'expected an object with {", ".join(sorted(_FIELDS))}, '
            f'perhaps {_SERVES} and {_SIGNS}, and nothing else'
        )
    return AllowedKey(
        public=checked_public(item['public']),
        name=checked_name(item['name']),
        role=checked_role(item['role']),
        created=_time(item['created']),
        revoked_at='' if item['revoked'] is None else _time(item['revoked']),
        serves=checked_servers(item.get(_SERVES, ())),
        signs=checked_public(item[_SIGNS]) if _SIGNS in item else '',
    )


def _time(value: object) -> str:
    try:
        moment = dt.datetime.fromisoformat(str(value))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise errors.KeysError(
            f'{_short(value)} is no time: expected one like '
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
    """Write an allow-list as text, one key per line."""
    lines = [f'    {json.dumps(_item(entry))}' for entry in entries]
    keys = '[\n' + ',\n'.join(lines) + '\n  ]' if lines else '[]'
    return f'{{\n  "version": {VERSION},\n  "keys": {keys}\n}}\n'


def _item(entry: AllowedKey) -> dict[str, Any]:
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


def good(entries: Entries, name: str) -> Entries:
    """The keys of a name that are not revoked, oldest first."""
    return tuple(e for e in entries if e.name == name and not e.revoked)


def added(entries: Entries, new: AllowedKey) -> Entries:
    """Put a key on the list.

    :raises KeysError: the key is there already, or the name has another
        role.
    """
    for entry in entries:
        if entry.public == new.public:
            state = 'was revoked for good' if entry.revoked else 'is there'
            raise errors.KeysError(
                f'{new.public} {state} as key of {entry.name}: expected a '
                'new key'
            )
    roles = {entry.role for entry in good(entries, new.name)}
    if roles - {new.role}:
        raise errors.KeysError(
            f'{new.name} is a {"".join(roles - {new.role})}: revoke its keys '
            f'before it becomes a {new.role}'
        )
    return (*entries, new)


def revoked(
    entries: Entries, name_or_key: str, moment: str
) -> tuple[Entries, Entries]:
    """Revoke one key, or all keys of a name.

    :param moment: time of it, ISO 8601.
    :returns: the list, and the entries that were revoked now.
    :raises KeysError: nothing of that name or key is there to be revoked.
    """
    chosen = [e for e in entries if name_or_key in (e.name, e.public)]
    if not chosen:
        raise errors.KeysError(
            f'neither a name nor a key of the allow-list: {name_or_key}'
        )
    if all(entry.revoked for entry in chosen):
        raise errors.KeysError(f'it is revoked already: {name_or_key}')
    changed = {
        entry.public: dataclasses.replace(entry, revoked_at=moment)
        for entry in chosen
        if not entry.revoked
    }
    return (
        tuple(changed.get(e.public, e) for e in entries),
        tuple(changed.values()),
    )


def serving(
    entries: Entries, name: str, servers: tuple[str, ...]
) -> tuple[Entries, Entries]:
    """Say which further servers the good keys of a name answer for.

    :param servers: in place of those of before.
    :returns: the list, and the entries of the name that are good.
    :raises KeysError: the name has no good key.
    """
    if not good(entries, name):
        raise errors.KeysError(f'{name} has no good key')
    changed = tuple(
        dataclasses.replace(entry, serves=servers)
        if entry.name == name and not entry.revoked
        else entry
        for entry in entries
    )
    return changed, good(changed, name)
