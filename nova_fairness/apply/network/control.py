# SPDX-License-Identifier: Apache-2.0

"""Classes of VMs in two trees of token buckets, one per direction.

The value of a VM is the rate, in bytes per second, that it gets in any case in
each direction; 0 means that it has no class. Leftover bandwidth is divided in
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
    """Steers what VMs send and receive; the trees stand while one is steered.

    :param settings: what is configured.
    :param source: gives the VMs that run, with their interfaces.
    :param record_path: where it is kept which class is whose.
    :param runner: as :func:`privileged_network.run`.
    :param read_kernel: reads traffic control.
    :param sys: where the kernel lists its interfaces.
    :param is_running: whether an incarnation's process still is the same.
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
        self._layout = network_layout.choose(settings, sys)
        self._kernel: state.Kernel | None = None
        self._seen: state.Kernel | None = None
        self._is_clean = False
        self._whys: dict[str, str] = {}
        self._named: dict[str, str] = {}

    @property
    def layout(self) -> network_layout.NetworkLayout:
        """Where VMs are steered."""
        return self._layout

    @property
    def capacity(self) -> int:
        """Bandwidth that VMs share in each direction, bytes per second."""
        kept = self._settings.kept(host_is_seen=bool(self._layout.uplink))
        return self._settings.rate - kept

    def unit_range(self) -> tuple[int, int]:
        """0 (no class) and the largest rate."""
        return 0, plan.HIGHEST_RATE

    def default(self) -> int:
        """Value of a VM that was never steered: no class."""
        return 0

    def availability(self) -> tuple[bool, str]:
        """Tell whether anybody can be steered here, and what decided."""
        if why := self._obstacle(self._seen or self._read_kernel()):
            return False, f'without effect: {why}'
        return True, f'at {self._layout.where}: {self._layout.why}'

    def without_effect(self) -> Mapping[str, str]:
        """Say, by key, which VMs cannot be steered in full, and why."""
        return dict(self._whys)

    def problems(self) -> tuple[str, ...]:
        """Name VMs that cannot be steered, each once while it is seen.

        One without an interface lacks nothing, so it is not named.
        """
        fresh = [
            f'{key}: without effect: {why}' if key else why
            for key, why in sorted(self._whys.items())
            if why not in {self._named.get(key), network_layout.NO_INTERFACE}
        ]
        self._named = dict(self._whys)
        return tuple(fresh)

    def read(self, keys: Sequence[str]) -> Mapping[str, int]:
        """Read what the kernel holds now.

        :param keys: of incarnations.
        :returns: bytes per second by key, 0 where the class or something
            that leads to it is missing or not as it was made; absent are
            those that cannot be steered.
        :raises ControlUnavailable: if the kernel cannot be asked.
        """
        self._kernel = self._seen = None
        kernel = self._read_kernel()
        self._kernel = self._seen = kernel
        self._trees.load(kernel, self._layout)
        if not self._trees.members:
            self._layout = network_layout.choose(self._settings, self._sys)
        if why := self._obstacle(kernel):
            self._whys = {'': f'without effect: {why}'}
            return {}
        return self._values(keys, kernel)

    def write(
        self, changes: Sequence[allocation.Change]
    ) -> tuple[control.ApplyResult, ...]:
        """Make all changes by one call of the privileged helper.

        :param changes: for this control; a change to 0 takes the class away.
        :returns: one outcome per change, in order.
        """
        try:
            kernel, self._kernel = self._kernel or self._read_kernel(), None
            self._trees.load(kernel, self._layout)
            members, refused = plan.members_wanted(
                self._trees.members,
                changes,
                plan.NetworkVms(
                    {item.key: item for item in self._source()},
                    self._runs,
                    network_layout.look(self._layout, kernel, self._sys),
                ),
                self.capacity,
            )
            self._is_clean = False
            failed = self._trees.make(kernel, self._layout, members)
        except exception.FairnessError as error:
            return tuple(
                self._outcome(change, str(error)) for change in changes
            )
        reasons = {**failed, **refused}
        return tuple(
            self._outcome(
                change,
                reasons.get(change.knob.incarnation) or failed.get('', ''),
            )
            for change in changes
        )

    def settle(self) -> tuple[str, ...]:
        """Take away classes without a write: those of VMs that ended.

        If no VM shall be steered, these are left from another configuration.
        """
        if self._layout.kind is network_settings.SteeringKind.OFF:
            return self.release()
        running = {item.key for item in self._source()}
        members = self._trees.members
        left = {
            key: item
            for key, item in members.items()
            if key in running or self._runs(key)
        }
        return () if len(left) == len(members) else self._bring(left)

    def release(self) -> tuple[str, ...]:
        """Take away all that is ours; cheap if nothing is.

        :returns: what could not be taken away, and why.
        """
        return () if self._is_clean else self._bring({})

    def _bring(self, members: plan.Members) -> tuple[str, ...]:
        """Leave these VMs their classes, and no others."""
        self._kernel = None
        try:
            kernel = self._read_kernel()
            self._trees.load(kernel, self._layout)
            failed = self._trees.make(kernel, self._layout, members)
        except exception.FairnessError as error:
            return (str(error),)
        self._is_clean = not failed and not members
        return tuple(failed.values())

    def _obstacle(self, kernel: state.Kernel) -> str:
        why = network_layout.obstacle(self._layout, kernel)
        if why or self._settings.rate:
            return why
        return (
            'the speed of the link is not known; expected [fairness_node] '
            'network_bandwidth'
        )

    def _values(
        self, keys: Sequence[str], kernel: state.Kernel
    ) -> dict[str, int]:
        view = network_layout.look(self._layout, kernel, self._sys)
        running = {item.key: item for item in self._source()}
        told = plan.doubles(running)
        members = plan.with_doubles(self._trees.members, told)
        self._trees.members = members
        unfinished = self._trees.unfinished(kernel, self._layout)
        self._whys = {k: why for k, why in self._whys.items() if k in running}
        values: dict[str, int] = {}
        for key in keys:
            is_whole = key in members and not unfinished & {'', key}
            if key in running:
                nics = self._steerable(running[key], view)
                if not nics:
                    continue
                if not self._may_have_class(key, nics, told.get(key, {})):
                    continue
                is_whole = is_whole and plan.has_interfaces(members[key], nics)
            elif key not in members:
                continue
            values[key] = members[key].rate if is_whole else 0
        return values

    def _steerable(
        self, found: instance.Incarnation, view: network_layout.NetworkFacts
    ) -> list[instance.Nic]:
        nics, why = network_layout.steerable(found.instance, view)
        self._whys.pop(found.key, None)
        if why:
            self._whys[found.key] = why
        return nics

    def _may_have_class(
        self,
        key: str,
        nics: Sequence[instance.Nic],
        told: Mapping[str, str],
    ) -> bool:
        """Tell whether a VM may have a class, or keep the reason in mind.

        The first VM with an address keeps its class, for traffic of its own
        tap. Traffic that comes in by an uplink belongs to neither.
        """
        if not told:
            return True
        why = plan.double(self._trees.members, key, nics)
        if (
            not why
            and self._layout.kind is network_settings.SteeringKind.UPLINK
        ):
            macs = ', '.join(sorted(told))
            text = (
                f'another VM of this node has the MAC address {macs} too, so '
                f'what it receives is in no class'
            )
            found = self._whys.get(key)
            self._whys[key] = f'{found}; {text}' if found else text
        if why:
            self._whys[key] = why
        return not why

    def _runs(self, key: str) -> bool:
        try:
            return self._is_running(key)
        except OSError:
            return True

    def _outcome(
        self, change: allocation.Change, error: str
    ) -> control.ApplyResult:
        if not error:
            return control.ApplyResult(change)
        key = change.knob.incarnation
        if not self._runs(key):
            return control.ApplyResult(change, gone=True)
        return control.ApplyResult(change, f'network of {key}: {error}')
