# SPDX-License-Identifier: Apache-2.0


"""Recipes of random clouds, and the section "generate" of a scenario."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import enum
import types
from typing import Any
from typing import TypeVar

from fairness_lab.scenario import demand as demand_module
from fairness_lab.scenario import yaml
from nova_fairness.model import resources


class Graph(enum.Enum):
    """Graphs of users and the nodes on which they have VMs."""

    CHAIN = 'chain'
    """User k has VMs on node k and on the next one."""

    STAR = 'star'
    """One user has VMs on all nodes, and every node has a user of its own."""

    RANDOM = 'random'
    """Every user has VMs on ``degree`` nodes drawn evenly."""


class DemandPattern(enum.Enum):
    """How much of what it could use a VM wants over time: its level, 0..1."""

    STEADY = 'steady'
    """All, always."""

    BURSTY = 'bursty'
    """All or 2 %; both last exponentially distributed times."""

    IDLE = 'idle'
    """A part ``idle`` of the VMs want 2 %, the others all."""

    HEAVY_TAILED = 'heavy-tailed'
    """5 % times a Pareto number of shape ``tail``, at most all, drawn again
    after exponentially distributed times."""

    MIXED = 'mixed'
    """Each VM is one of the above, each as likely."""

    CRON = 'cron'
    """All for ``length`` of every ``period`` rounds, else 2 %; each VM begins
    at a round of its own, drawn evenly."""


@dataclasses.dataclass(frozen=True)
class CloudRecipe:
    """Parameters of random clouds.

    :ivar graph: which users are on which nodes.
    :ivar nodes: number of nodes.
    :ivar users: number of users, for random graphs.
    :ivar degree: nodes on which a user has VMs, for random graphs.
    :ivar vms_per_node: VMs on each node at a time.
    :ivar skew: exponent s of the Zipf distribution by which the users of a
        node are owners of its VMs; 0 is even.
    :ivar node_cpus: CPUs of a node, each as likely.
    :ivar node_speeds: relative speed of a node, each as likely.
    :ivar memory_per_cpu_mib: memory of a node per CPU, MiB.
    :ivar disk_mib_s: rate of a node, MiB/s.
    :ivar network_mbit_s: rate of a node, Mbit/s.
    :ivar vcpus: of a VM, each as likely.
    :ivar memory_mib: of a VM's flavor, each as likely.
    :ivar user_weights: quota weights of users, each as likely.
    :ivar resources: names of what is wanted beside idle memory.
    :ivar pressure: amounts that the VMs of a node want of its disk, network
        and memory at level 1, relative to the capacity; each VM half to one
        and a half times an even part.
    :ivar coupled: part of the VMs that use their resources together.
    :ivar demand: how levels go.
    :ivar on: mean length of a burst, rounds.
    :ivar off: mean length of a pause, rounds.
    :ivar idle: part of idle VMs.
    :ivar tail: shape of the Pareto distribution, > 0.
    :ivar churn: probability that a VM ends in a round, for which another of
        the same user begins; lives are geometric.
    :ivar moves: probability that a VM moves in a round, to another node of
        its user.
    :ivar loop: way of the VMs' work, each as likely; VMs that use resources
        together are closed loops.
    :ivar threads: of a pool.
    :ivar period: rounds from one job of cron to the next.
    :ivar length: rounds that such a job takes.
    :ivar seed: of everything.
    """

    graph: Graph = Graph.RANDOM
    nodes: int = 10
    users: int = 20
    degree: int = 3
    vms_per_node: int = 8
    skew: float = 0.0
    node_cpus: tuple[float, ...] = (4.0,)
    node_speeds: tuple[float, ...] = (1.0,)
    memory_per_cpu_mib: float = 4096.0
    disk_mib_s: float = 200.0
    network_mbit_s: float = 1000.0
    vcpus: tuple[float, ...] = (1.0,)
    memory_mib: tuple[float, ...] = (1024.0,)
    user_weights: tuple[float, ...] = (1.0,)
    resources: tuple[str, ...] = ('cpu_time',)
    pressure: float = 2.0
    coupled: float = 0.0
    demand: DemandPattern = DemandPattern.STEADY
    on: float = 10.0
    off: float = 20.0
    idle: float = 0.5
    tail: float = 1.5
    churn: float = 0.0
    moves: float = 0.0
    loop: tuple[demand_module.CpuLoad, ...] = (demand_module.CpuLoad.CLOSED,)
    threads: int = 4
    period: int = 20
    length: int = 5
    seed: int = 0

    def node_names(self) -> tuple[str, ...]:
        """Names of the nodes, in the order of the arrays."""
        return tuple(numbered_names('node', self.nodes))


def numbered_names(word: str, count: int) -> list[str]:
    """Names that sort by number."""
    width = len(str(count - 1))
    return [f'{word}{place:0{width}d}' for place in range(count)]


DEFAULTS: Mapping[str, Any] = types.MappingProxyType(
    {field.name: field.default for field in dataclasses.fields(CloudRecipe)}
)


Value = yaml.YamlValue
_Word = TypeVar('_Word', bound=enum.Enum)

SHORT_NAMES = {
    'cpu': ('cpu_time',),
    'disk': ('disk_read', 'disk_written'),
    'network': ('net_received', 'net_sent'),
    'memory': ('memory',),
}
"""Words for several resources at once."""

_LOOPS = tuple(
    kind.value
    for kind in demand_module.CpuLoad
    if kind is not demand_module.CpuLoad.CRON
)
_MOST_VMS = 10_000_000


def recipe(value: Value, seed: int) -> CloudRecipe | None:
    """Read the section "generate".

    :param seed: if the section names none.
    :raises BadScenario: with file, line and what was expected.
    """
    section = value.section()
    found = {
        name: section.take(name, convert, DEFAULTS[name])
        for name, convert in _READERS.items()
    }
    found['seed'] = section.take('seed', lambda v: v.integer(0, 2**32), seed)
    section.finish()
    result = CloudRecipe(**found)
    if result.nodes * result.vms_per_node > _MOST_VMS:
        raise value.wrong(f'at most {_MOST_VMS} VMs')
    return result


def resource_names(value: Value) -> tuple[str, ...]:
    """Read a list of resources, by their names or shorter words."""
    words = (*SHORT_NAMES, *resources.RESOURCES.names)
    if value.node.value == 'all':
        return resources.RESOURCES.names
    found = [item.one_of(words) for item in value.items()]
    return tuple(
        name for word in found for name in SHORT_NAMES.get(word, (word,))
    )


def _read_count(value: Value) -> int:
    return value.integer(1, _MOST_VMS)


def _read_numbers(value: Value) -> tuple[float, ...]:
    """Read a number above 0, or a list of them."""
    if not isinstance(value.node.value, list):
        return (value.positive(),)
    found = tuple(item.positive() for item in value.items())
    if not found:
        raise value.wrong('at least one number')
    return found


def _read_integers(value: Value) -> tuple[float, ...]:
    found = _read_numbers(value)
    if any(number != int(number) for number in found):
        raise value.wrong('whole numbers')
    return found


def _read_loops(value: Value) -> tuple[demand_module.CpuLoad, ...]:
    """Read the kinds of CPU load of VMs: a word, or a list of them."""
    if not isinstance(value.node.value, list):
        return (read_loop(value),)
    found = tuple(read_loop(item) for item in value.items())
    if not found:
        raise value.wrong('at least one word')
    return found


def read_loop(value: Value) -> demand_module.CpuLoad:
    """Read the kind of a VM's CPU load; cron jobs are not allowed."""
    return demand_module.CpuLoad(value.one_of(_LOOPS))


def _read_fraction(value: Value) -> float:
    number = value.number()
    if number > 1:
        raise value.wrong('a number, 0 to 1')
    return number


def one_of_words(kind: type[_Word]) -> Callable[[Value], _Word]:
    """A reader of one of the words of an enumeration."""
    words = tuple(str(entry.value) for entry in kind)
    return lambda value: kind(value.one_of(words))


_READERS: dict[str, Callable[[Value], Any]] = {
    'graph': one_of_words(Graph),
    'nodes': _read_count,
    'users': _read_count,
    'degree': _read_count,
    'vms_per_node': _read_count,
    'skew': Value.number,
    'node_cpus': _read_numbers,
    'node_speeds': _read_numbers,
    'memory_per_cpu_mib': Value.positive,
    'disk_mib_s': Value.positive,
    'network_mbit_s': Value.positive,
    'vcpus': _read_integers,
    'memory_mib': _read_numbers,
    'user_weights': _read_numbers,
    'resources': resource_names,
    'pressure': Value.positive,
    'coupled': _read_fraction,
    'demand': one_of_words(DemandPattern),
    'on': Value.positive,
    'off': Value.positive,
    'idle': _read_fraction,
    'tail': Value.positive,
    'churn': _read_fraction,
    'moves': _read_fraction,
    'loop': _read_loops,
    'threads': _read_count,
    'period': _read_count,
    'length': _read_count,
}

KEYS = tuple(field.name for field in dataclasses.fields(CloudRecipe))
"""All keys of the section."""
