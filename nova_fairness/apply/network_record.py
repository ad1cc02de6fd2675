# SPDX-License-Identifier: Apache-2.0

"""The durable record of which class belongs to which VM.

The kernel holds the classes, this says whose they are: it lets an agent that
follows one that was killed go on, or take everything away.
"""

from collections.abc import Mapping
import dataclasses
import json
import os
import pathlib
from typing import Any

from nova_fairness import exception
from nova_fairness.apply.network import plan
from nova_fairness.apply.network import state

VERSION = 1
_BOOT_ID = pathlib.Path('/proc/sys/kernel/random/boot_id')


@dataclasses.dataclass(frozen=True)
class Content:
    """What is recorded.

    :ivar members: by key of the incarnation; rates are not recorded.
    :ivar ingress: interface whose ingress qdisc is ours, empty if none.
    """

    members: Mapping[str, plan.Member]
    ingress: str = ''


EMPTY = Content({})


class NetworkRecord:
    """A file that is replaced as a whole; it belongs to one boot.

    :param path: of the file.
    :param boot_id: of the machine's run; read from the kernel unless given.
    """

    def __init__(self, path: pathlib.Path, boot_id: str = '') -> None:
        self._path = path
        self._boot_id = boot_id or _BOOT_ID.read_text('ascii').strip()
        self._saved: Content | None = None

    def load(self) -> Content:
        """Read it; nothing if there is none, or none that can be used.

        Then what is ours is still known by its numbers, but not whose.
        """
        try:
            content = json.loads(self._path.read_text('utf-8'))
            if (
                content['version'] != VERSION
                or content['boot_id'] != self._boot_id
            ):
                return EMPTY
            members = {
                str(key): _member(item)
                for key, item in content['members'].items()
            }
            self._saved = Content(members, str(content['ingress']))
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return EMPTY
        return self._saved

    def save(self, content: Content) -> None:
        """Write it, unless it says so already; on return it is on the disk.

        :raises StateError: if it cannot be written.
        """
        if self._saved is not None and _same(self._saved, content):
            return
        text = json.dumps(self._form(content), sort_keys=True) + '\n'
        new = self._path.with_name(f'{self._path.name}.new')
        try:
            with new.open('w', encoding='utf-8') as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            new.replace(self._path)
        except OSError as error:
            raise exception.StateError(
                f'cannot write the record of classes {self._path}: {error}'
            ) from error
        self._saved = content

    def _form(self, content: Content) -> dict[str, Any]:
        return {
            'version': VERSION,
            'boot_id': self._boot_id,
            'ingress': content.ingress,
            'members': {
                key: {
                    'minor': item.minor,
                    'taps': list(item.taps),
                    'filters': [
                        [mac, number]
                        for (_, number), mac in item.filters.items()
                    ],
                }
                for key, item in content.members.items()
            },
        }


def _member(item: Mapping[str, Any]) -> plan.Member:
    filters = {
        (state.bucket_of(str(mac)), int(number)): str(mac)
        for mac, number in item['filters']
    }
    taps = tuple(str(tap) for tap in item['taps'])
    return plan.Member(int(item['minor']), filters, taps, 0)


def _same(one: Content, other: Content) -> bool:
    return (
        one.ingress == other.ingress
        and one.members.keys() == other.members.keys()
        and all(
            _same_numbers(item, other.members[key])
            for key, item in one.members.items()
        )
    )


def _same_numbers(one: plan.Member, other: plan.Member) -> bool:
    if one.filters is not other.filters and one.filters != other.filters:
        return False
    return one.minor == other.minor and one.taps == other.taps
