# SPDX-License-Identifier: Apache-2.0

"""What is special for a goal is in its module: others know none by name."""

import ast
import pathlib

import pytest

from nova_fairness.model import plans as model
from tests.unit import layer_rules

TOP = pathlib.Path(__file__).resolve().parents[5]
PLACE = 'nova_fairness.cluster.move_plans'
GOALS = f'{PLACE}.goals'
VALUES = {each.value for each in model.Goal}
OPEN = {f'{GOALS}.goal', f'{GOALS}.empty'}
"""What any module may import: the contract, and the goal that operators ask
for by a call of its own."""

KNOW = ('nova_fairness.model.plans', GOALS, f'{PLACE}.registry')


def aliases(tree):
    """Names of a module that mean the enumeration of goals."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            [target, value] = node.targets[0], node.value
            several = isinstance(target, ast.Tuple) and isinstance(
                value, ast.Tuple
            )
            pairs = (
                zip(target.elts, value.elts, strict=True)
                if several
                else [(target, value)]
            )
            found |= {
                layer_rules.dotted(name)
                for name, meant in pairs
                if is_goal(layer_rules.dotted(meant), ())
            }
    return found


def is_goal(name, others):
    return name.rpartition('.')[2] == 'Goal' or name in others


def is_named(node, others):
    """Whether a node names one goal."""
    if isinstance(node, ast.Attribute):
        chain = layer_rules.dotted(node.value)
        return node.attr in model.Goal.__members__ and is_goal(chain, others)
    if isinstance(node, ast.Subscript):
        return is_goal(layer_rules.dotted(node.value), others)
    if isinstance(node, ast.Call):
        has_literal = any(isinstance(each, ast.Constant) for each in node.args)
        return has_literal and is_goal(layer_rules.dotted(node.func), others)
    if isinstance(node, ast.Compare | ast.Match):
        values = {
            each.value
            for each in ast.walk(node)
            if isinstance(each, ast.Constant)
        }
        return 'goal' in ast.unparse(node) and bool(values & VALUES)
    return False


def faults(source, module):
    if layer_rules.within(module, KNOW):
        return []
    tree = ast.parse(source)
    others = aliases(tree)
    named = [
        f'{module}:{node.lineno} names a goal: {ast.unparse(node)}'
        for node in ast.walk(tree)
        if is_named(node, others)
    ]
    return named + [
        f'{module}:{line} imports {target}'
        for line, target in layer_rules.imports(tree, module, False)
        if layer_rules.within(target, (GOALS,)) and target not in OPEN
    ]


def test_no_other_module_knows_a_goal_by_name():
    found = []
    for path in sorted((TOP / 'nova_fairness').rglob('*.py')):
        name = '.'.join(path.relative_to(TOP).with_suffix('').parts)
        found += faults(path.read_text(encoding='utf-8'), name)
    assert found == []


@pytest.mark.parametrize(
    'source',
    [
        'if plan.goal is model.Goal.RESCUE: pass',
        'from x import Goal\nsome = {Goal.EMPTY, Goal.REPACK}',
        '_G = model.Goal\nif plan.goal in (_G.HELP,): pass',
        '_C, _G = model.PlanCause, model.Goal\nfound = _G.MARKET',
        "if plan.goal.value == 'rescue': pass",
        "if row['goal'] in ('market', 'help'): pass",
        "match plan.goal.value:\n    case 'rescue': pass",
        "same = plan.goal is model.Goal('rescue')",
        "same = plan.goal is model.Goal['RESCUE']",
        f'from {GOALS} import rescue',
        f'import {GOALS}.rescue',
    ],
)
def test_the_check_finds_a_goal_named_in_another_module(source):
    assert faults(source, f'{PLACE}.outcome') != []
    assert faults(source, f'{GOALS}.balance') == []


@pytest.mark.parametrize(
    'source',
    [
        'if plan.goal in registry.CLOSING: pass',
        'goal = model.Goal(row["goal"])',
        'if why is EmptyReason.EMPTY: pass',
        "if table == 'market': pass",
        f'from {GOALS} import goal',
    ],
)
def test_a_module_that_names_no_goal_has_no_fault(source):
    assert faults(source, f'{PLACE}.outcome') == []
