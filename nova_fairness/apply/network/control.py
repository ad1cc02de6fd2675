# SPDX-License-Identifier: Apache-2.0

"""Bandwidth classes of VMs in two trees of token buckets, one per direction.

The value of a VM is its guaranteed rate in each direction, in bytes per
second; 0 means that it has no class. Leftover bandwidth is divided in
proportion to the rates. See ``doc/source/admin/network.rst``.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import functools
import pathlib

from nova_fairness import exception
from nova_fairness.apply import control
from nova_fairness.apply import privileged_network
from nova_fairness.apply.cgroup import files
from nova_fairness.apply.network import kernel as network_kernel
from nova_fairness.apply.network import layout as network_layout
from nova_fairness.apply.network import plan
from nova_fairness.apply.network import settings as network_settings
from nova_fairness.apply.network import state
from nova_fairness.apply.network import trees
from nova_fairness.model import allocation
from nova_fairness.model import instance
from nova_fairness.model import resources

Source = Callable[[], Sequence[instance.Incarnation]]

_is_running = functools.partial(files.is_running, '/proc')


def _read_kernel() -> state.Kernel:
    with network_kernel.KernelConnection() as reader:
        return reader.read()


class NetworkClasses(control.Control):
    """Steers the network traffic of VMs; trees exist while a VM is steered.

    :param settings: of the network.
    :param source: returns the running VMs with their interfaces.
    :param record_path: of the file that records the class of each VM.
    :param runner: as :func:`privileged_network.run`.
    :param read_kernel: reads the state of traffic control.
    :param sys: where the kernel lists its interfaces.
    :param is_running: checks whether an incarnation's process is still the
        same.
    """

    kind = resources.ResourceControl.NETWORK

    def __init__(
        self,
        settings: network_settings.NetworkSettings,
        source: Source,
        record_path: pathlib.Path,
        runner: trees.Runner = privileged_network.run,
        read_kernel: Callable[[], state.Kernel] = _read_kernel,
        sys: pathlib.Path = network_layout.SYS,
        is_running: Callable[[str], bool] = _is_running,
    ) -> None:
        self._settings = settings
        self._source = source
        self._read_kernel = read_kernel
        self._sys = sys
        self._is_running = is_running
        self._trees = trees.NetworkTrees(
            settings,
            trees.NetworkRecord(record_path),
            runner,
            read_kernel,
        )
        self._layout = network_layout.choose_layout(settings, sys)
        self._kernel: state.Kernel | None = None
        self._newest_kernel: state.Kernel | None = None
        self._is_clean = False
        self._causes: dict[str, str] = {}
        self._reported_causes: dict[str, str] = {}

    @property
    def layout(self) -> network_layout.NetworkLayout:
        """The interfaces at which VMs are steered."""
        return self._layout

    @property
    def capacity(self) -> int:
        """The bandwidth that VMs share in each direction, bytes per second."""
        kept = self._settings.reserved_rate(
            host_is_seen=bool(self._layout.uplink)
        )
        return self._settings.rate - kept

    def unit_range(self) -> tuple[int, int]:
        """Return 0 (no class) and the largest rate."""
        return 0, plan.HIGHEST_RATE

    def default(self) -> int:
        """Return the value of a VM that was never steered: no class."""
        return 0

    def availability(self) -> tuple[bool, str]:
        """Return whether VMs can be steered here, and the cause."""
        if why := self._obstacle(self._newest_kernel or self._read_kernel()):
            return False, f'without effect: {why}'
        return True, f'at {self._layout.where}: {self._layout.why}'

    def without_effect(self) -> Mapping[str, str]:
        """Return why VMs cannot be steered in full, by key."""
        return dict(self._causes)

    def problems(self) -> tuple[str, ...]:
        """Return errors of VMs that cannot be steered, each once per VM.

        A VM without an interface is not named.
        """
        fresh = [
            f'{key}: without effect: {why}' if key else why
            for key, why in sorted(self._causes.items())
            if why
            not in {
                self._reported_causes.get(key),
                network_layout.NO_INTERFACE,
            }
        ]
        self._reported_causes = dict(self._causes)
        return tuple(fresh)

    def read(self, keys: Sequence[str]) -> Mapping[str, int]:
        """Read the present rates.

        :param keys: of incarnations.
        :returns: bytes per second by key, without VMs that cannot be steered;
            0 where the class or an object that it needs is missing or changed.
        :raises ControlUnavailable: if the kernel does not answer.
        """
        self._kernel = self._newest_kernel = None
        kernel = self._read_kernel()
        self._kernel = self._newest_kernel = kernel
        self._trees.load(kernel, self._layout)
        if not self._trees.members:
            self._layout = network_layout.choose_layout(
                self._settings, self._sys
            )
        if why := self._obstacle(kernel):
            self._causes = {'': f'without effect: {why}'}
            return {}
        return self._rates_by_key(keys, kernel)

    def write(
        self, changes: Sequence[allocation.Change]
    ) -> tuple[control.ApplyResult, ...]:
        """Write all changes by one call of the privileged helper.

        :param changes: for this control; a change to 0 removes the class.
        :returns: one result per change, in the same sequence.
        """
        try:
            kernel, self._kernel = self._kernel or self._read_kernel(), None
            self._trees.load(kernel, self._layout)
            members, refused = plan.members_wanted(
                self._trees.members,
                changes,
                plan.NetworkVms(
                    {item.key: item for item in self._source()},
                    self._may_be_running,
                    network_layout.read_facts(self._layout, kernel, self._sys),
                ),
                self.capacity,
            )
            self._is_clean = False
            failed = self._trees.apply(kernel, self._layout, members)
        except exception.FairnessError as error:
            return tuple(
                self._result(change, str(error)) for change in changes
            )
        reasons = {**failed, **refused}
        return tuple(
            self._result(
                change,
                reasons.get(change.knob.incarnation) or failed.get('', ''),
            )
            for change in changes
        )

    def settle(self) -> tuple[str, ...]:
        """Remove the classes of VMs that ended.

        If steering is off, all classes are removed, which another
        configuration may have created.
        """
        if self._layout.kind is network_settings.SteeringKind.OFF:
            return self.release()
        running = {item.key for item in self._source()}
        members = self._trees.members
        left = {
            key: item
            for key, item in members.items()
            if key in running or self._may_be_running(key)
        }
        return () if len(left) == len(members) else self._set_members(left)

    def release(self) -> tuple[str, ...]:
        """Remove all objects of this agent; cheap if there are none.

        :returns: error messages.
        """
        return () if self._is_clean else self._set_members({})

    def _set_members(self, members: plan.Members) -> tuple[str, ...]:
        """Set the VMs that have classes, and remove all other classes."""
        self._kernel = None
        try:
            kernel = self._read_kernel()
            self._trees.load(kernel, self._layout)
            failed = self._trees.apply(kernel, self._layout, members)
        except exception.FairnessError as error:
            return (str(error),)
        self._is_clean = not failed and not members
        return tuple(failed.values())

    def _obstacle(self, kernel: state.Kernel) -> str:
        why = network_layout.obstacle(self._layout, kernel)
        if why or self._settings.rate:
            return why
        return (
            'speed of the link: unknown; set [fairness_node] network_bandwidth'
        )

    def _rates_by_key(
        self, keys: Sequence[str], kernel: state.Kernel
    ) -> dict[str, int]:
        view = network_layout.read_facts(self._layout, kernel, self._sys)
        running = {item.key: item for item in self._source()}
        told = plan.duplicate_macs(running)
        members = plan.with_duplicates(self._trees.members, told)
        self._trees.members = members
        unfinished = self._trees.unfinished(kernel, self._layout)
        self._causes = {
            k: why for k, why in self._causes.items() if k in running
        }
        values: dict[str, int] = {}
        for key in keys:
            is_whole = key in members and not unfinished & {'', key}
            if key in running:
                nics = self._steerable_interfaces(running[key], view)
                if not nics:
                    continue
                if not self._may_have_class(key, nics, told.get(key, {})):
                    continue
                is_whole = is_whole and plan.has_interfaces(members[key], nics)
            elif key not in members:
                continue
            values[key] = members[key].rate if is_whole else 0
        return values

    def _steerable_interfaces(
        self, found: instance.Incarnation, view: network_layout.NetworkFacts
    ) -> list[instance.Nic]:
        nics, why = network_layout.steerable(found.instance, view)
        self._causes.pop(found.key, None)
        if why:
            self._causes[found.key] = why
        return nics

    def _may_have_class(
        self,
        key: str,
        nics: Sequence[instance.Nic],
        told: Mapping[str, str],
    ) -> bool:
        """Check whether a VM may have a class; store the cause if not.

        The first VM with a MAC address keeps its class, for traffic of its own
        tap. Traffic to such an address from an uplink has no class.
        """
        if not told:
            return True
        why = plan.duplicate_mac(self._trees.members, key, nics)
        if (
            not why
            and self._layout.kind is network_settings.SteeringKind.UPLINK
        ):
            macs = ', '.join(sorted(told))
            text = (
                f'another VM of this node has the MAC address {macs} too, so '
                f'what it receives is in no class'
            )
            found = self._causes.get(key)
            self._causes[key] = f'{found}; {text}' if found else text
        if why:
            self._causes[key] = why
        return not why

    def _may_be_running(self, key: str) -> bool:
        try:
            return self._is_running(key)
        except OSError:
            return True

    def _result(
        self, change: allocation.Change, error: str
    ) -> control.ApplyResult:
        if not error:
            return control.ApplyResult(change)
        key = change.knob.incarnation
        if not self._may_be_running(key):
            return control.ApplyResult(change, gone=True)
        return control.ApplyResult(change, f'network of {key}: {error}')
