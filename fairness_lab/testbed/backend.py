# SPDX-License-Identifier: Apache-2.0

"""Contract of backends: they run a scenario's VMs and agents."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
from typing import Any
from typing import Protocol

from fairness_lab.results import recording
from fairness_lab.scenario import demand


@dataclasses.dataclass(frozen=True, slots=True)
class VmState:
    """Use of a VM so far.

    :ivar cpu_s: cumulative CPU seconds; ``None`` if not known.
    :ivar cpu_shares: kernel units; ``None`` if not known.
    :ivar work: cumulative units of work; ``None`` if not known.
    :ivar state: :data:`recording.RUNNING` or why it does not run.
    :ivar more: of :data:`recording.MORE_COLUMNS`, those that are known.
    """

    cpu_s: float | None
    cpu_shares: int | None
    work: float | None
    state: str = recording.RUNNING
    more: Mapping[str, float] = dataclasses.field(default_factory=dict)


class Redis(Protocol):
    """The Redis server through which agents find each other."""

    def start(self) -> None:
        """Start it, empty."""

    def kill(self) -> None:
        """End it as a crash would."""

    def freeze(self) -> None:
        """Stop the process of Redis: clients get no answers."""

    def thaw(self) -> None:
        """Let it go on."""

    def flush(self) -> None:
        """Delete all keys of Redis."""


class Backend(Protocol):
    """Runs nodes, VMs and agents, and has a clock."""

    @property
    def name(self) -> str:
        """Name of the backend in the result."""

    def open(self, say: Callable[[str], None]) -> None:
        """Bring up nodes and those VMs that do not start late."""

    def close(self) -> None:
        """End everything; nothing is left."""

    def now(self) -> float:
        """Seconds of a clock that never goes back."""

    def sleep_until(self, when: float) -> None:
        """Let time pass."""

    def load(self, vm: str, step: demand.DemandStep) -> None:
        """Tell a VM what it wants from now on."""

    def start_vm(self, vm: str, ready: Callable[[], None]) -> None:
        """Start a VM; ``ready`` is called when it takes commands."""

    def destroy_vm(self, vm: str) -> None:
        """End a VM."""

    def move_vm(self, vm: str, node: str, ready: Callable[[], None]) -> None:
        """End a VM and start it on another node; ``ready`` as above."""

    def freeze_vm(self, vm: str) -> None:
        """Stop a VM's process."""

    def thaw_vm(self, vm: str) -> None:
        """Let a VM's process go on."""

    def start_agents(self, nodes: Iterable[str], *, wait: bool) -> None:
        """Start agents; with ``wait``, until each has made a round."""

    def stop_agents(self, nodes: Iterable[str], *, kill: bool) -> None:
        """End agents, cleanly or as a crash would."""

    def restart_agent(self, node: str) -> None:
        """End an agent cleanly, then start it; returns at once."""

    def hold_agents(self, nodes: Iterable[str]) -> None:
        """Stop the agents' processes where they are."""

    def release_agents(self, nodes: Iterable[str]) -> None:
        """Let held agents go on."""

    def cut(self, node: str) -> None:
        """Cut a node off from all others and from Redis."""

    def heal(self, node: str) -> None:
        """Connect a node again after :meth:`cut`."""

    def redis(self) -> Redis:
        """Redis of the run."""

    def state(self, vm: str) -> VmState | None:
        """Read a VM; ``None`` if it does not exist."""

    def fio(self, seconds: float) -> Mapping[str, Mapping[str, float]]:
        """Repeat the present disk load with fio; the VMs' own ends.

        Each VM's part is done by a process with the weight that the VM has.

        :returns: by VM: ``weight``, and ``bytes_per_s`` that fio moved.
        """

    def machine(self) -> dict[str, Any]:
        """Describe the machine of the run."""
