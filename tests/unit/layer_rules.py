# SPDX-License-Identifier: Apache-2.0

"""The rules of the architecture as tables, and a reader that checks them.

Every function takes source text or a syntax tree and gives back sentences,
one per broken rule; :mod:`tests.unit.test_layers` applies them to the
package.
"""

import ast
from collections.abc import Iterator
from collections.abc import Mapping
import graphlib
import pathlib
import re

PACKAGE = 'nova_fairness'
OURS = (
    PACKAGE,
    'api_ext',
    'fairness_dashboard',
    'fairness_lab',
    'oslo_messaging_zmq',
)
"""The packages of this repository."""

_VOCABULARY = frozenset({'model', 'exception'})
_MATHEMATICS = _VOCABULARY | {'shares'}
_ROOMS = _MATHEMATICS | {
    'batch',
    'collect',
    'measure',
    'exchange',
    'decide',
    'apply',
    'nova_service',
    'observe',
    'planners',
    'runtime',
    'oslo_messaging_zmq',
}
_ASSEMBLY = _ROOMS | {'conf', 'plugins', 'version'}
_EVALUATION = _MATHEMATICS | {'decide', 'measure', 'plugins', 'version'}

ARROWS: Mapping[str, frozenset[str]] = {
    'exception': frozenset(),
    'version': frozenset(),
    'model': _VOCABULARY,
    # Checks what it loads against the contracts in these rooms.
    'plugins': _VOCABULARY | {'batch', 'measure', 'decide', 'planners'},
    'conf': _VOCABULARY,
    'shares': _VOCABULARY,
    'collect': _VOCABULARY,
    'measure': _MATHEMATICS,
    # Says a thing once, however many peers send it.
    'exchange': _VOCABULARY | {'runtime'},
    'decide': _MATHEMATICS,
    # Its records are replaced as all state is.
    'apply': _VOCABULARY | {'runtime'},
    # Usable by any program: it knows nothing of this product.
    'oslo_messaging_zmq': frozenset(),
    # What any service needs; opens the transport, so it knows the driver.
    'runtime': _VOCABULARY | {'oslo_messaging_zmq'},
    'rpc': _VOCABULARY,
    # Asks Nova beside the rounds.
    'nova_service': _VOCABULARY | {'runtime'},
    'observe': _VOCABULARY,
    'planners': _MATHEMATICS,
    # A strategy of OpenStack Watcher, which alone loads it.
    'watcher': _VOCABULARY | {'planners'},
    # Asks batch systems by their commands.
    'batch': _VOCABULARY,
    'client': _VOCABULARY | {'rpc'},
    # Contract suites run the contracts that live in these rooms.
    'testing': _MATHEMATICS | {'batch', 'measure', 'decide', 'planners'},
    'agent': _ASSEMBLY | {'rpc'},
    'cluster': _ASSEMBLY | {'rpc'},
    # Knows no fairness and no database: who assembles it says where messages
    # are kept. Says once that a server is away.
    'relay': _VOCABULARY | {'runtime'},
    # Notebooks call load without the name of a room.
    'fairness_lab': {'fairness_lab.measures'},
    'fairness_lab.figures': _VOCABULARY
    | {'fairness_lab.measures', 'fairness_lab.results'},
    'fairness_lab.ideal': _MATHEMATICS,
    # Read by laboratory and simulator alike, so it knows neither.
    # Its files are YAML, as those of operators.
    'fairness_lab.scenario': _VOCABULARY | {'fairness_lab.results', 'runtime'},
    'fairness_lab.results': _VOCABULARY | {'fairness_lab.ideal'},
    'fairness_lab.measures': _EVALUATION
    | {
        'fairness_lab.ideal',
        'fairness_lab.scenario',
        'fairness_lab.node_sim',
    },
    # Knows nobody who judges it or draws it.
    'fairness_lab.node_sim': _MATHEMATICS
    | {'decide', 'measure', 'fairness_lab.scenario'},
    # The queue's own planner and orders on simulated clouds.
    'fairness_lab.queue_sim': _MATHEMATICS
    | {
        'planners',
        'plugins',
        'version',
        'fairness_lab.measures',
        'fairness_lab.scenario',
        # Who moves is judged by what agents and kernels make of it.
        'fairness_lab.node_sim',
    },
    # The queue's simulation beside a batch system.
    'fairness_lab.border_sim': _MATHEMATICS
    | {
        'planners',
        'plugins',
        'version',
        'fairness_lab.queue_sim',
        'fairness_lab.measures',
        'fairness_lab.scenario',
    },
    # Runs the simulators' commands, not their code; rankings are judged by
    # the intervals that their results have.
    'fairness_lab.evidence': _VOCABULARY | {'fairness_lab.measures'},
    # Writes packages for others, and asks which plugins exist.
    'fairness_lab.plugin_kit': _VOCABULARY | {'plugins'},
    # Real machines: it does not know the simulator.
    'fairness_lab.testbed': _ASSEMBLY
    | {
        'rpc',
        'fairness_lab.figures',
        'fairness_lab.ideal',
        'fairness_lab.results',
        'fairness_lab.scenario',
    },
    'fairness_lab.cmd': _EVALUATION
    | {
        'oslo_messaging_zmq',
        'fairness_lab.border_sim',
        'fairness_lab.evidence',
        'fairness_lab.plugin_kit',
        'fairness_lab.queue_sim',
        'fairness_lab.figures',
        'fairness_lab.ideal',
        'fairness_lab.measures',
        'fairness_lab.results',
        'fairness_lab.scenario',
        'fairness_lab.node_sim',
        'fairness_lab.testbed',
        'runtime',
    },
    # Signs what it chooses for a domain, as the command does.
    'api_ext': _VOCABULARY | {'rpc', 'conf', 'plugins', 'runtime', 'version'},
    # Pages of Horizon, on machines without any other part of this product.
    'fairness_dashboard': frozenset({'client'}),
    'cmd': _ASSEMBLY
    | {'agent', 'cluster', 'relay', 'client', 'rpc', 'testing'},
}
"""What each room may import besides itself. Rooms of ``nova_fairness`` go
without its name; every folder of ``fairness_lab`` is a room; the other
packages are one each."""

OUTSIDERS: Mapping[str, tuple[str, ...]] = {
    'libvirt': (
        'collect',
        'apply.guest_agent',
        'fairness_lab.testbed',
        'cmd',
    ),
    # A guest may let a call wait: no round makes one.
    'libvirt_qemu': ('apply.guest_agent',),
    'oslo_policy': ('api_ext.enforcement', 'api_ext.policies'),
    'webob': ('api_ext.application', 'api_ext.filter'),
    'nova': ('nova_service', 'api_ext.filter', 'api_ext.location'),
    'nova.monkey_patch': ('nova_service', 'api_ext', 'cmd'),
    'stevedore': ('plugins',),
    'watcher': ('watcher',),
    'oslo_privsep': (
        'apply.privileged_client',
        'apply.privileged',
        'apply.privileged_network',
    ),
    'matplotlib': ('fairness_lab.figures.style',),
    'rich.progress': ('fairness_lab.figures.progress',),
    'highspy': ('fairness_lab.ideal.highs',),
    'scipy': ('shares.programs', 'fairness_lab.measures.paired'),
    # Tables of states are read in one place.
    'automaton': ('model.transitions',),
    # The database is one room: others get values.
    'sqlalchemy': ('cluster.store',),
    'alembic': ('cluster.store.schema', 'cluster.store.migrations'),
    'oslo_db': ('cluster.store',),
    'cryptography': (
        'cluster.store.sealing',
        'oslo_messaging_zmq.keys.signing',
    ),
    # Nova and Placement over HTTP, and what their failures mean.
    'django': ('fairness_dashboard',),
    'horizon': ('fairness_dashboard',),
    'openstack_auth': ('fairness_dashboard.connection',),
    'openstack_dashboard': ('fairness_dashboard.connection',),
    'openstack': (
        'fairness_dashboard.connection',
        'fairness_dashboard.parts',
        'client.base',
        'client.directory',
        'client.http',
        'client.resources',
        'client.sdk',
        'cluster.openstack.clients',
    ),
    # AMQP itself: oslo.messaging would acknowledge before a message is safe.
    'kombu': ('relay.link',),
    'amqp': ('relay.link',),
    'prometheus_client': ('observe',),
}
"""Which modules alone may import a package that is not ours."""

PURE = (
    'api_ext.owners',
    'batch.slurm_accounts',
    'batch.slurm_forms',
    'batch.slurm_json',
    'model',
    'measure',
    'decide',
    'shares',
    'planners',
    'cluster.messages',
    'relay.envelope',
    'collect.parse',
    'exchange.limits',
    'exchange.codec',
    'exchange.desired',
    'exchange.ledger',
    'exchange.tables',
    'fairness_lab.border_sim.batch',
    'fairness_lab.border_sim.cloud',
    'fairness_lab.border_sim.engine',
    'fairness_lab.border_sim.judgement',
    'fairness_lab.border_sim.border_policies',
    'fairness_lab.border_sim.world',
    'fairness_lab.queue_sim.attacks',
    'fairness_lab.queue_sim.engine',
    'fairness_lab.queue_sim.hosts',
    'fairness_lab.queue_sim.judgement',
    'fairness_lab.queue_sim.evictions',
    'fairness_lab.queue_sim.streams',
    'fairness_lab.queue_sim.workload',
    'fairness_lab.node_sim.agents',
    'fairness_lab.ideal.bounded',
    'fairness_lab.scenario.chance',
    'fairness_lab.scenario.cloud',
    'fairness_lab.scenario.demand',
    'fairness_lab.node_sim.sharing',
    'fairness_lab.ideal.columns',
    'fairness_lab.measures.distance',
    'fairness_lab.node_sim.engine',
    'fairness_lab.scenario.generate',
    'fairness_lab.ideal.filling',
    'fairness_lab.ideal.ideal',
    'fairness_lab.measures.measures',
    'fairness_lab.node_sim.kernel',
    'fairness_lab.node_sim.knowledge',
    'fairness_lab.node_sim.links',
    'fairness_lab.node_sim.loops',
    'fairness_lab.node_sim.meters',
    'fairness_lab.measures.measures',
    'fairness_lab.node_sim.model',
    'fairness_lab.scenario.recipes',
    'fairness_lab.ideal.program',
    'fairness_lab.node_sim.pace_levels',
    'fairness_lab.node_sim.references',
    'fairness_lab.node_sim.steering',
)

PURE_MAY_IMPORT = frozenset(
    {
        'abc',
        'base64',
        'binascii',
        'bisect',
        'collections',
        'dataclasses',
        'datetime',
        'decimal',
        'enum',
        'fnmatch',
        'fractions',
        'functools',
        'hashlib',
        'heapq',
        'ipaddress',
        'itertools',
        'json',
        'math',
        'msgpack',
        'msgspec',
        'numpy',
        'operator',
        're',
        'statistics',
        'string',
        'struct',
        'textwrap',
        'types',
        'typing',
        'uuid',
        'xml',
        'zlib',
    }
)
"""Everything else may reach a clock, a file, a socket, a process, chance,
the configuration or a log."""

PURE_MAY_IMPORT_IN = {
    # Paths as values: only the classes that never touch a file.
    'model.cgroup': frozenset({'pathlib'}),
    # Tables of states, which know neither clock nor thread.
    'model.transitions': frozenset({'automaton'}),
    # Assignments and integer programs: values in, values out.
    'shares.programs': frozenset({'scipy'}),
}
"""What single pure modules may import besides."""

PURE_MAY_NOT_CALL = re.compile(
    r'^(open|exec|eval|input|print|breakpoint|__import__'
    r'|(.*\.)?(now|utcnow|today|uuid1|uuid4)'
    r'|(np|numpy)\.(random(\..*)?|load|loadtxt|genfromtxt|fromfile|memmap)'
    r'|(np|numpy)\.(save|savez|savetxt)|.*\.tofile'
    r'|pathlib\.(Path|PosixPath)(\..*)?)$'
)

LONE = pathlib.Path(__file__).with_name('lone_modules.txt')

FORBIDDEN_WORDS = frozenset({'utils', 'helper', 'data', 'info', 'handle'})

Imports = Iterator[tuple[int, str]]


def room_of(module: str) -> str:
    """Room of a dotted name below the package."""
    parts = module.split('.')
    return '.'.join(parts[: 2 if parts[0] == 'fairness_lab' else 1])


def within(module: str, places: tuple[str, ...]) -> bool:
    """Tell whether a module is one of the places or inside one."""
    return any(f'{module}.'.startswith(f'{place}.') for place in places)


def dotted(node: ast.AST) -> str:
    """Write a chain of names as source does; empty if it is no chain."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f'{before}.{node.attr}' if before else f'?.{node.attr}'
    return ''


def imports(tree: ast.AST, module: str, is_package: bool) -> Imports:
    """Find every import, wherever it stands and however it is written.

    :param module: full dotted name, to resolve relative imports.
    :returns: line and full dotted name of what is imported; a computed name
        is given as ``?``.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, module, is_package)
            for name in node.names:
                yield node.lineno, f'{base}.{name.name}'
        elif isinstance(node, ast.Call):
            yield from _dynamic(node)


def _base(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    if not node.level:
        return node.module or ''
    above = node.level - is_package
    parent = module.split('.')[: -above or None]
    return '.'.join([*parent, *filter(None, [node.module])])


def _dynamic(node: ast.Call) -> Imports:
    name = dotted(node.func).rsplit('.', 1)[-1]
    if name not in ('import_module', '__import__'):
        return
    argument = node.args[0] if node.args else None
    if isinstance(argument, ast.Constant):
        yield node.lineno, str(argument.value)
    else:
        yield node.lineno, '?'


def arrow_faults(source: str, module: str, is_package: bool) -> list[str]:
    """Check imports of our own rooms and of guarded packages.

    :param module: dotted name, such as ``nova_fairness.measure.metric`` or
        ``fairness_lab.ideal.maxmin``.
    """
    place = module.removeprefix(f'{PACKAGE}.')
    faults = []
    for line, target in imports(ast.parse(source), module, is_package):
        why = _arrow_fault(place, target)
        if why:
            faults.append(f'{module}:{line} {why}')
    return faults


def _arrow_fault(place: str, target: str) -> str:
    room = room_of(place)
    if target == '?':
        return '' if room == 'plugins' else 'imports a computed name'
    if target == PACKAGE:
        return 'imports the whole package'
    if target.split('.')[0] not in OURS:
        return _outsider_fault(place, target)
    wanted = room_of(target.removeprefix(f'{PACKAGE}.'))
    if wanted == room or wanted in ARROWS.get(room, frozenset()):
        return ''
    if room not in ARROWS:
        return f'is in a room without arrows: {room}'
    return f'{room} may not import {wanted} ({target})'


def _outsider_fault(place: str, target: str) -> str:
    known = [name for name in OUTSIDERS if within(target, (name,))]
    if not known or within(place, OUTSIDERS[max(known, key=len)]):
        return ''
    allowed = ', '.join(OUTSIDERS[max(known, key=len)]) or 'nobody'
    return f'imports {target}, which only {allowed} may'


def purity_faults(source: str, module: str, is_package: bool) -> list[str]:
    """Check that a pure module cannot reach the world.

    :returns: nothing for a module outside :data:`PURE`.
    """
    place = module.removeprefix(f'{PACKAGE}.')
    if not within(place, PURE):
        return []
    tree = ast.parse(source)
    allowed = PURE_MAY_IMPORT | PURE_MAY_IMPORT_IN.get(place, frozenset())
    faults = [
        f'{module}:{line} is pure and may not import {target}'
        for line, target in imports(tree, module, is_package)
        if target.split('.')[0] not in allowed | set(OURS)
        or PURE_MAY_NOT_CALL.match(target)
    ]
    for node in ast.walk(tree):
        name = dotted(node.func) if isinstance(node, ast.Call) else ''
        if PURE_MAY_NOT_CALL.match(name):
            faults.append(f'{module}:{node.lineno} is pure, calls {name}()')
    return faults


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def name_faults(source: str, module: str) -> list[str]:
    """Check that names of modules, functions and classes say something."""
    faults = [
        f'{module}: the name says nothing: {part}'
        for part in module.split('.')
        if _words(part) & FORBIDDEN_WORDS
    ]
    for node in ast.walk(ast.parse(source)):
        name = node.name if isinstance(node, _DEFINITIONS) else ''
        if _words(name) & FORBIDDEN_WORDS:
            faults.append(f'{module}: the name says nothing: {name}')
    return faults


def _words(name: str) -> set[str]:
    spaced = re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_', name)
    return set(spaced.lower().split('_'))


def classes(source: str) -> Iterator[str]:
    """Names of the public classes of a module."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith('_'):
            yield node.name


def length_faults(
    source: str, module: str, function_lines: int, module_lines: int
) -> list[str]:
    """Check that functions and the module fit on a page or a few."""
    count = len(source.splitlines())
    faults = []
    if count > module_lines:
        faults.append(f'{module} has {count} lines, more than {module_lines}')
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            size = (node.end_lineno or node.lineno) - node.lineno + 1
            if size > function_lines:
                faults.append(
                    f'{module}:{node.lineno} {node.name} has {size} lines,'
                    f' more than {function_lines}'
                )
    return faults


def reasons() -> Mapping[str, str]:
    """Why a module stands apart that one neighbour alone imports.

    Such a module is often a slice of its importer: merge it, or add a line
    ``module: reason``.
    """
    lines = LONE.read_text('utf-8').splitlines()
    return dict(line.split(': ', 1) for line in lines)


def lone(sources: Mapping[str, tuple[str, bool]]) -> set[str]:
    """Find modules that a single module of their own folder imports.

    :param sources: source text, and whether it is that of a package, by
        dotted name.
    :returns: their places, as :func:`reasons` names them.
    """
    importers: dict[str, set[str]] = {module: set() for module in sources}
    for module, (source, is_package) in sources.items():
        for _, target in imports(ast.parse(source), module, is_package):
            if target in importers:
                importers[target].add(module)
    return {
        module.removeprefix(f'{PACKAGE}.')
        for module, found in importers.items()
        if not sources[module][1]
        and [_folder(item) for item in found] == [_folder(module)]
    }


def circles(sources: Mapping[str, tuple[str, bool]]) -> list[str]:
    """Find a circle of modules that import each other, lazily or at once.

    What is imported for type checkers alone is left out.

    :param sources: as :func:`lone` takes them.
    :returns: the modules of one circle, the first again at the end; empty if
        there is none.
    """
    graph = graphlib.TopologicalSorter(
        {
            module: {
                target
                for _, target in imports(
                    _at_run_time(ast.parse(source)), module, is_package
                )
                if target in sources
            }
            for module, (source, is_package) in sources.items()
        }
    )
    try:
        graph.prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def _at_run_time(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and dotted(node.test).endswith(
            'TYPE_CHECKING'
        ):
            node.body = []
    return tree


def _folder(module: str) -> str:
    return module.rpartition('.')[0]
