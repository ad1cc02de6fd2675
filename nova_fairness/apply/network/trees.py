# SPDX-License-Identifier: Apache-2.0

"""Brings the kernel's trees to what they shall be, and remembers whose."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import json
import pathlib
from typing import Any

from nova_fairness import exception
from nova_fairness.apply.network import layout as network_layout
from nova_fairness.apply.network import plan
from nova_fairness.apply.network import settings as network_settings
from nova_fairness.apply.network import state
from nova_fairness.runtime import state_file

_RECORD_VERSION = 1
_BOOT_ID = pathlib.Path('/proc/sys/kernel/random/boot_id')


@dataclasses.dataclass(frozen=True)
class RecordedClasses:
    """Record of the classes and filters that were made.

    :ivar members: by key of the incarnation; rates are not recorded.
    :ivar ingress: interface whose ingress qdisc is ours, empty if none.
    """

    members: Mapping[str, plan.Member]
    ingress: str = ''


NOTHING = RecordedClasses({})


class NetworkRecord:
    """A file that is replaced as a whole; it belongs to one boot.

    :param path: of the file.
    :param boot_id: of the machine's run; read from the kernel unless given.
    """

    def __init__(self, path: pathlib.Path, boot_id: str = '') -> None:
        self._path = path
        self._boot_id = boot_id or _BOOT_ID.read_text('ascii').strip()
        self._saved: RecordedClasses | None = None

    def load(self) -> RecordedClasses:
        """Read it; nothing if there is none, or none that can be used.

        Then what is ours is still known by its numbers, but not whose.
        """
        try:
            content = json.loads(self._path.read_text('utf-8'))
            if (
                content['version'] != _RECORD_VERSION
                or content['boot_id'] != self._boot_id
            ):
                return NOTHING
            members = {
                str(key): _member(item)
                for key, item in content['members'].items()
            }
            self._saved = RecordedClasses(members, str(content['ingress']))
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return NOTHING
        return self._saved

    def save(self, content: RecordedClasses) -> None:
        """Write it, unless it says so already; on return it is on the disk.

        :raises StateError: if it cannot be written.
        """
        if self._saved is not None and _says_same(self._saved, content):
            return
        text = json.dumps(self._form(content), sort_keys=True) + '\n'
        try:
            state_file.replace(self._path, text, durable=True)
        except OSError as error:
            raise exception.StateError(
                f'cannot write the record of classes {self._path}: {error}'
            ) from error
        self._saved = content

    def _form(self, content: RecordedClasses) -> dict[str, Any]:
        return {
            'version': _RECORD_VERSION,
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


def _says_same(one: RecordedClasses, other: RecordedClasses) -> bool:
    return (
        one.ingress == other.ingress
        and one.members.keys() == other.members.keys()
        and all(
            _has_same_numbers(item, other.members[key])
            for key, item in one.members.items()
        )
    )


def _has_same_numbers(one: plan.Member, other: plan.Member) -> bool:
    if one.filters is not other.filters and one.filters != other.filters:
        return False
    return one.minor == other.minor and one.taps == other.taps


Runner = Callable[[Sequence[plan.Operation]], list[str]]


class NetworkTrees:
    """The classes of all VMs of a node, as they shall be.

    :param settings: what is configured.
    :param record: where it is kept which class is whose.
    :param runner: as :func:`privileged_network.run`.
    :param read_kernel: reads traffic control.
    :ivar members: who has which class, by key of the incarnation.
    """

    def __init__(
        self,
        settings: network_settings.NetworkSettings,
        record: NetworkRecord,
        runner: Runner,
        read_kernel: Callable[[], state.Kernel],
    ) -> None:
        self._settings = settings
        self._record = record
        self._runner = runner
        self._read_kernel = read_kernel
        self._content: RecordedClasses | None = None
        self.members: plan.Members = {}

    def load(
        self, kernel: state.Kernel, layout: network_layout.NetworkLayout
    ) -> None:
        """Take over, once, what an agent before this one left."""
        if self._content is not None:
            return
        self._content = self._record.load()
        out = layout.uplink or state.IFB_OUT
        self.members = plan.with_rates_of(
            self._content.members, kernel.trees.get(out, state.NO_TREE)
        )

    def unfinished(
        self, kernel: state.Kernel, layout: network_layout.NetworkLayout
    ) -> frozenset[str]:
        """Name the VMs whose state is not as it shall be.

        :returns: keys; one that is empty concerns all VMs.
        """
        return frozenset(key for key, _ in self._plan(kernel, layout))

    def make(
        self,
        kernel: state.Kernel,
        layout: network_layout.NetworkLayout,
        members: plan.Members,
    ) -> dict[str, str]:
        """Make the trees of these VMs and of no others.

        New objects of ours are on record before they are made.

        :returns: why, by key, empty for the node, something failed.
        :raises FairnessError: if nothing of it could be tried.
        """
        before, self.members = self.members, members
        steps = self._plan(kernel, layout)
        ingress = next(
            (str(op[1]) for _, op in steps if op[0] == 'ingress'),
            self._ingress,
        )
        try:
            self._note({**before, **members}, ingress)
            errors = self._runner([operation for _, operation in steps])
        except BaseException:
            self.members = before
            raise
        failed = self._still_wrong(layout, steps, errors)
        if not failed:
            self._note(members, ingress if members else '')
        return failed

    @property
    def _ingress(self) -> str:
        return '' if self._content is None else self._content.ingress

    def _plan(
        self, kernel: state.Kernel, layout: network_layout.NetworkLayout
    ) -> tuple[plan.Step, ...]:
        uplink, rate = layout.uplink, self._settings.rate
        if not uplink:
            rate -= self._settings.kept(host_is_seen=False)
        at_taps = layout.kind is network_settings.SteeringKind.TAP
        target = plan.NetworkTarget(uplink, at_taps, rate, self.members)
        return plan.plan(kernel, target, self._ingress)

    def _note(self, members: plan.Members, ingress: str) -> None:
        content = RecordedClasses(members, ingress)
        if members or (self._content and self._content.members):
            self._record.save(content)
        self._content = content

    def _still_wrong(
        self,
        layout: network_layout.NetworkLayout,
        steps: Sequence[plan.Step],
        errors: Sequence[str],
    ) -> dict[str, str]:
        """Judge by the kernel what errors were about."""
        told = {
            key: error
            for (key, _), error in zip(steps, errors, strict=True)
            if error
        }
        if not told:
            return {}
        left = self._plan(self._read_kernel(), layout)
        return {
            key: told.get(key) or f'{operation[0]} has no effect'
            for key, operation in left
        }
