# SPDX-License-Identifier: Apache-2.0
"""Kinds of policies that a metric is for, and warnings about other pairs."""

from collections.abc import Set
import enum

from nova_fairness.model import defaults


class PolicyKind(enum.Enum):
    """How a policy uses heaviness."""

    EQUALISES = 'makes heaviness equal'
    """Moves weights until those who compete are equally heavy."""

    MAPS = 'gives every heaviness a weight of its own'
    """Knows only one heaviness, and not the other accounts."""


ANY: frozenset[PolicyKind] = frozenset(PolicyKind)
"""The policies for a metric that names none."""

_EXAMPLES = {PolicyKind.EQUALISES: defaults.POLICY, PolicyKind.MAPS: 'thesis'}


def warning(
    metric: str, suits: Set[PolicyKind], policy: str, kind: PolicyKind | None
) -> str:
    """Say that users may be worse off with a pair than without any agent.

    :param metric: its name.
    :param suits: the kinds of policies that it is for.
    :param policy: its name.
    :param kind: of the policy; ``None`` if that is not known.
    :returns: a sentence without its full stop; empty if the metric is for such
        a policy, or that is not known.
    """
    if kind is None or kind in suits:
        return ''
    text = (
        f'metric {metric} with policy {policy} can leave users worse off '
        f'than no agent at all: {policy} {kind.value}, for which {metric} '
        'is not made'
    )
    better = [_EXAMPLES[each] for each in PolicyKind if each in suits]
    return f'{text}; policy {" or ".join(better)} suits it' if better else text


def are_kinds(suits: object) -> bool:
    """Tell whether a metric names kinds of policies that there are."""
    return isinstance(suits, Set) and all(map(_is_kind, suits))


def may_be_kind(kind: object) -> bool:
    """Tell whether a policy names its kind, or says that it has none."""
    return kind is None or _is_kind(kind)


def _is_kind(value: object) -> bool:
    return isinstance(value, PolicyKind)
