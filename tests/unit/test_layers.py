# SPDX-License-Identifier: Apache-2.0

"""The architecture of the package is a test, not a wish."""

import ast
import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import functools
import pathlib
import re
import subprocess
import textwrap

import pytest

from tests.unit import layer_rules

TOP = pathlib.Path(__file__).resolve().parents[2]
ROOTS = layer_rules.OURS

LONGEST = 50, 1000
"""Lines of a function, and of a module: a module is one whole concept."""


def modules() -> Iterator[tuple[str, pathlib.Path]]:
    for root in ROOTS:
        for path in sorted((TOP / root).rglob('*.py')):
            name = path.relative_to(TOP).with_suffix('')
            parts = [part for part in name.parts if part != '__init__']
            yield '.'.join(parts), path


def is_package(path: pathlib.Path) -> bool:
    return path.name == '__init__.py'


def tracked_texts() -> Iterator[tuple[str, str]]:
    listed = subprocess.run(
        ['git', '-c', f'safe.directory={TOP}', 'ls-files', '-z'],
        cwd=TOP,
        capture_output=True,
        check=False,
        text=True,
    )
    for name in filter(None, listed.stdout.split('\0')):
        path = TOP / name
        if path.is_file() and path.suffix not in ('.png', '.gz'):
            yield name, path.read_text(encoding='utf-8', errors='replace')


@functools.cache
def sources() -> Mapping[str, tuple[str, bool]]:
    return {
        module: (path.read_text(encoding='utf-8'), is_package(path))
        for module, path in modules()
    }


def faults_of(
    rule: Callable[[str, str, bool], Iterable[str]],
) -> list[str]:
    return [
        fault
        for module, (source, is_a_package) in sources().items()
        for fault in rule(source, module, is_a_package)
    ]


def test_every_import_between_rooms_is_allowed():
    assert faults_of(layer_rules.arrow_faults) == []


def test_pure_modules_cannot_reach_the_world():
    assert faults_of(layer_rules.purity_faults) == []


def test_names_in_the_package_are_specific():
    found = faults_of(
        lambda source, module, _: layer_rules.name_faults(source, module)
    )
    assert found == []


def test_public_class_names_are_unique():
    """Readers and searches find one class by its name."""
    places = collections.defaultdict(list)
    for module, (source, _) in sources().items():
        for name in layer_rules.classes(source):
            places[name].append(module)
    assert {n: found for n, found in places.items() if len(found) > 1} == {}


def test_functions_and_modules_are_short():
    found = faults_of(
        lambda source, module, _: layer_rules.length_faults(
            source, module, *LONGEST
        )
    )
    assert found == []


def contents_imported(
    source: str, module: str, is_a_package: bool
) -> Iterator[str]:
    for _, target in layer_rules.imports(
        ast.parse(source), module, is_a_package
    ):
        if target.startswith(tuple(f'{root}.' for root in ROOTS)):
            place = TOP.joinpath(*target.split('.'))
            if not place.is_dir() and not place.with_suffix('.py').is_file():
                yield f'{module} imports {target}, which is no module'


def test_first_party_imports_name_modules_not_their_contents():
    assert faults_of(contents_imported) == []


def test_no_modules_import_each_other():
    assert layer_rules.circles(sources()) == []


def test_the_check_finds_an_import_cycle():
    place = 'nova_fairness.apply'
    made = {
        f'{place}.one': (f'from {place} import two', False),
        f'{place}.two': (f'def f():\n    from {place} import three', False),
        f'{place}.three': (f'from {place} import one', False),
    }
    assert len(layer_rules.circles(made)) == len(made) + 1
    only_typed = f'if TYPE_CHECKING:\n    from {place} import one'
    made[f'{place}.three'] = (only_typed, False)
    assert layer_rules.circles(made) == []


def test_a_module_that_one_neighbour_imports_has_a_reason():
    found = layer_rules.lone(sources())
    reasons = layer_rules.reasons()
    assert found - set(reasons) == set(), 'merge it or say why not'
    assert set(reasons) - found == set(), 'no reason needed any more'
    assert all(text.endswith('.') for text in reasons.values())
    assert list(reasons) == sorted(reasons)


def test_the_check_finds_a_lone_module():
    imports = {
        'apply.one': 'from nova_fairness.apply import two',
        'apply.two': '',
        'apply.three': 'from nova_fairness.apply import one',
        'apply.four': 'from nova_fairness.apply import one',
        'model.far': 'from nova_fairness.apply import four',
    }
    sources = {
        f'nova_fairness.{place}': (source, False)
        for place, source in imports.items()
    }
    assert layer_rules.lone(sources) == {'apply.two'}


def test_the_tables_name_every_room_that_exists():
    rooms = {
        prefix + path.stem
        for root, prefix in (
            ('nova_fairness', ''),
            ('fairness_lab', 'fairness_lab.'),
        )
        for path in (TOP / root).iterdir()
        if path.is_dir() and any(path.glob('*.py'))
    }
    assert rooms <= set(layer_rules.ARROWS)


def test_nothing_but_cmd_imports_modules_above_the_rooms():
    for room, targets in layer_rules.ARROWS.items():
        if room != 'cmd':
            assert not targets & {
                'agent',
                'cluster',
                'relay',
                'cmd',
            }, room


def test_the_product_does_not_know_the_laboratory():
    for room, targets in layer_rules.ARROWS.items():
        if room.split('.')[0] != 'fairness_lab':
            known = {target.split('.')[0] for target in targets}
            assert 'fairness_lab' not in known, room


def test_the_driver_imports_no_other_package_of_this_project():
    assert layer_rules.ARROWS['oslo_messaging_zmq'] == frozenset()


def test_no_text_names_a_path_of_a_machine():
    place = re.compile(r'(?<![\w.<{}*$"])/(?:home|Users|work)/\w')
    assert [n for n, text in tracked_texts() if place.search(text)] == []


SNIPPETS = {
    'a plain import': (
        'nova_fairness.measure.metric',
        'import nova_fairness.decide.policy',
        'measure may not import decide',
    ),
    'a from import of a room': (
        'nova_fairness.apply.cgroup.control',
        'from nova_fairness import conf',
        'apply may not import conf',
    ),
    'a relative import': (
        'nova_fairness.collect.host',
        'from ..apply import control',
        'collect may not import apply',
    ),
    'an import inside a function': (
        'nova_fairness.decide.policy',
        'def decide():\n    from nova_fairness import plugins\n',
        'decide may not import plugins',
    ),
    'an import in a string': (
        'nova_fairness.observe.recorder',
        'import importlib\nimportlib.import_module("nova_fairness.agent.x")',
        'observe may not import agent',
    ),
    'a computed import': (
        'nova_fairness.observe.recorder',
        'import importlib\nimportlib.import_module(name)',
        'computed name',
    ),
    'libvirt outside the room that reads the host': (
        'nova_fairness.apply.cgroup.control',
        'import libvirt',
        'only collect, apply.guest_agent, fairness_lab.testbed, cmd may',
    ),
    'nova in the agent': (
        'nova_fairness.agent.service',
        'from nova import context',
        'only nova_service, api_ext.filter, api_ext.location may',
    ),
    'stevedore outside plugins': (
        'nova_fairness.cmd.agent',
        'from stevedore import driver',
        'only plugins may',
    ),
    'privsep away from the door to root': (
        'nova_fairness.apply.cgroup.control',
        'from oslo_privsep import priv_context',
        'imports oslo_privsep.priv_context, which only',
    ),
    'the agent in the laboratory': (
        'fairness_lab.testbed.running',
        'from nova_fairness.agent import cycle',
        'fairness_lab.testbed may not import agent',
    ),
    'the simulator in the laboratory': (
        'fairness_lab.testbed.running',
        'from fairness_lab.node_sim import engine',
        'fairness_lab.testbed may not import fairness_lab.node_sim',
    ),
    'the laboratory in the product': (
        'nova_fairness.agent.round.cycle',
        'from fairness_lab.ideal import maxmin',
        'agent may not import fairness_lab.ideal',
    ),
    'the product in the driver': (
        'oslo_messaging_zmq.rpc.port',
        'from nova_fairness import exception',
        'oslo_messaging_zmq may not import exception',
    ),
    'the HTTP extension reading the host': (
        'api_ext.handlers.metric',
        'from nova_fairness.collect import host',
        'api_ext may not import collect',
    ),
    'the dashboard asking agents': (
        'fairness_dashboard.board',
        'from nova_fairness import rpc',
        'fairness_dashboard may not import rpc',
    ),
    'Horizon in the product': (
        'nova_fairness.client.status',
        'import horizon',
        'imports horizon, which only fairness_dashboard may',
    ),
    'an unplanned room': (
        'nova_fairness.attic.box',
        'from nova_fairness.model import node',
        'room without arrows: attic',
    ),
}


@pytest.mark.parametrize(
    ('module', 'source', 'expected'), SNIPPETS.values(), ids=SNIPPETS
)
def test_the_check_finds_a_forbidden_import(module, source, expected):
    faults = layer_rules.arrow_faults(source, module, is_package=False)
    assert len(faults) == 1
    assert expected in faults[0]


ALLOWED = {
    'the vocabulary': (
        'nova_fairness.apply.cgroup.control',
        'from nova_fairness import exception, model',
    ),
    'the own room, relatively': (
        'nova_fairness.apply.cgroup.control',
        'from . import control\nfrom .control import Control',
    ),
    'rooms in the agent': (
        'nova_fairness.agent.round.cycle',
        'from nova_fairness import collect, decide, plugins',
    ),
    'everything in cmd': (
        'nova_fairness.cmd.agent',
        'from nova_fairness.agent import service\nimport nova.monkey_patch',
    ),
    'the standard library': (
        'nova_fairness.collect.host',
        'import os, time\nimport numpy as np',
    ),
}


@pytest.mark.parametrize(('module', 'source'), ALLOWED.values(), ids=ALLOWED)
def test_the_check_accepts_an_allowed_import(module, source):
    assert layer_rules.arrow_faults(source, module, is_package=False) == []


def test_a_package_resolves_relative_imports_from_itself():
    faults = layer_rules.arrow_faults(
        'from .. import conf', 'nova_fairness.measure', is_package=True
    )
    assert len(faults) == 1
    assert 'measure may not import conf' in faults[0]


@pytest.mark.parametrize(
    ('module', 'source'),
    [
        ('measure.metric', 'import time'),
        ('measure.metric', 'import logging'),
        ('measure.metric', 'from oslo_log import log'),
        ('measure.metrics.asset', 'import random'),
        ('measure.metrics.asset', 'import numpy as np\nnp.random.rand()'),
        ('measure.metrics.asset', 'from numpy import random'),
        ('decide.policy', 'import datetime\ndatetime.datetime.now()'),
        ('decide.policy', 'open("/proc/stat")'),
        ('model.node', 'import pathlib'),
        ('model.cgroup', 'import pathlib\npathlib.Path("/").exists()'),
        ('model.cgroup', 'from pathlib import Path'),
        ('shares.decay', 'import threading'),
        ('collect.parse', 'import subprocess'),
        ('exchange.codec', 'import socket'),
        ('fairness_lab.node_sim.engine', 'def f():\n    import os'),
    ],
)
def test_the_check_finds_an_effect_in_a_pure_module(module, source):
    name = f'nova_fairness.{module}'
    assert len(layer_rules.purity_faults(source, name, False)) == 1


@pytest.mark.parametrize(
    ('module', 'source'),
    [
        ('measure.metric', 'import abc\nimport numpy.typing as npt'),
        ('model.cgroup', 'import pathlib\npathlib.PurePosixPath("/")'),
        ('collect.parse', 'import xml.etree.ElementTree as tree'),
        ('collect.host', 'import time\nopen("/proc/stat")'),
    ],
)
def test_the_check_accepts_pure_code(module, source):
    name = f'nova_fairness.{module}'
    assert layer_rules.purity_faults(source, name, False) == []


@pytest.mark.parametrize(
    ('module', 'source', 'count'),
    [
        ('model.utils', '', 1),
        ('model.node', 'class NodeInfo:\n    pass', 1),
        ('model.node', 'def read_data():\n    pass', 1),
        ('model.node', 'class DataHelper:\n    def handle(self): ...', 2),
        ('model.node', 'def metadata():\n    pass', 0),
        ('model.node', 'def handler_of_metadata():\n    pass', 0),
    ],
)
def test_the_check_finds_an_unspecific_name(module, source, count):
    faults = layer_rules.name_faults(source, f'nova_fairness.{module}')
    assert len(faults) == count


def test_the_check_finds_long_functions_and_modules():
    body = textwrap.indent('x = 1\n' * 50, '    ')
    faults = layer_rules.length_faults(f'def f():\n{body}', 'm', 50, 50)
    assert faults == [
        'm has 51 lines, more than 50',
        'm:1 f has 51 lines, more than 50',
    ]
