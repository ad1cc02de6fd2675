# SPDX-License-Identifier: Apache-2.0

"""Changes the kernel's trees to the wanted state, and records their owners."""

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
    """The classes and filters that this agent created.

    :ivar members: by key of the incarnation; rates are not recorded.
    :ivar ingress: interface with this agent's ingress qdisc; empty if none.
    """

    members: Mapping[str, plan.Member]
    ingress: str = ''


EMPTY_RECORD = RecordedClasses({})


class NetworkRecord:
    """A file with the created classes; it belongs to one boot.

    :param path: of the file; it is replaced as a whole.
    :param boot_id: of the machine's run; read from the kernel unless given.
    """

    def __init__(self, path: pathlib.Path, boot_id: str = '') -> None:
        self._path = path
        self._boot_id = boot_id or _BOOT_ID.read_text('ascii').strip()
        self._saved: RecordedClasses | None = None

    def load(self) -> RecordedClasses:
        """Read the file; return an empty record if it is missing or unusable.

        Then the agent still recognizes its objects by their numbers, but not
        the VMs that they belong to.
        """
        try:
            content = json.loads(self._path.read_text('utf-8'))
            if (
                content['version'] != _RECORD_VERSION
                or content['boot_id'] != self._boot_id
            ):
                return EMPTY_RECORD
            members = {
                str(key): _parse_member(item)
                for key, item in content['members'].items()
            }
            self._saved = RecordedClasses(members, str(content['ingress']))
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return EMPTY_RECORD
        return self._saved

    def save(self, content: RecordedClasses) -> None:
        """Write the file durably, unless its content is the same.

        :raises StateError: if it cannot be written.
        """
        if self._saved is not None and _is_same_record(self._saved, content):
            return
        text = json.dumps(self._as_json(content), sort_keys=True) + '\n'
        try:
            state_file.replace(self._path, text, durable=True)
        except OSError as error:
            raise exception.StateError(
                f'record of network classes {self._path}: cannot be '
                f'written: {error}'
            ) from error
        self._saved = content

    def _as_json(self, content: RecordedClasses) -> dict[str, Any]:
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


def _parse_member(item: Mapping[str, Any]) -> plan.Member:
    filters = {
        (state.bucket_of(str(mac)), int(number)): str(mac)
        for mac, number in item['filters']
    }
    taps = tuple(str(tap) for tap in item['taps'])
    return plan.Member(int(item['minor']), filters, taps, 0)


def _is_same_record(one: RecordedClasses, other: RecordedClasses) -> bool:
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
    """The classes of all VMs of a node.

    :param settings: of the network.
    :param record: file that records the class of each VM.
    :param runner: as :func:`privileged_network.run`.
    :param read_kernel: reads the state of traffic control.
    :ivar members: wanted class of each VM, by key of the incarnation.
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
        """Read, once, the record of an earlier agent."""
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
        """Return the VMs whose traffic control differs from the wanted state.

        :returns: keys; an empty key means all VMs.
        """
        return frozenset(key for key, _ in self._plan(kernel, layout))

    def apply(
        self,
        kernel: state.Kernel,
        layout: network_layout.NetworkLayout,
        members: plan.Members,
    ) -> dict[str, str]:
        """Create the classes of these VMs, and remove all others.

        New objects are recorded before they are created.

        :returns: error messages by key; an empty key means the node.
        :raises FairnessError: if no step could be tried.
        """
        before, self.members = self.members, members
        steps = self._plan(kernel, layout)
        ingress = next(
            (str(op[1]) for _, op in steps if op[0] == 'ingress'),
            self._ingress,
        )
        try:
            self._save_record({**before, **members}, ingress)
            errors = self._runner([operation for _, operation in steps])
        except BaseException:
            self.members = before
            raise
        failed = self._remaining_errors(layout, steps, errors)
        if not failed:
            self._save_record(members, ingress if members else '')
        return failed

    @property
    def _ingress(self) -> str:
        return '' if self._content is None else self._content.ingress

    def _plan(
        self, kernel: state.Kernel, layout: network_layout.NetworkLayout
    ) -> tuple[plan.Step, ...]:
        uplink, rate = layout.uplink, self._settings.rate
        if not uplink:
            rate -= self._settings.reserved_rate(host_is_seen=False)
        at_taps = layout.kind is network_settings.SteeringKind.TAP
        target = plan.NetworkTarget(uplink, at_taps, rate, self.members)
        return plan.plan_steps(kernel, target, self._ingress)

    def _save_record(self, members: plan.Members, ingress: str) -> None:
        content = RecordedClasses(members, ingress)
        if members or (self._content and self._content.members):
            self._record.save(content)
        self._content = content

    def _remaining_errors(
        self,
        layout: network_layout.NetworkLayout,
        steps: Sequence[plan.Step],
        errors: Sequence[str],
    ) -> dict[str, str]:
        """Return the errors whose steps are still missing in the kernel."""
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
