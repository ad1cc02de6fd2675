# SPDX-License-Identifier: Apache-2.0
"""Kinds of policies that suit a metric, and warnings about other
combinations.
"""

from collections.abc import Set
import enum

from nova_fairness.model import defaults


class PolicyKind(enum.Enum):
    """How a policy uses heaviness."""

    EQUALISES = 'makes heaviness equal'
    """The policy changes weights until competing owners are equally heavy."""

    MAPS = 'gives every heaviness a weight of its own'
    """The policy computes a weight from the heaviness of one owner, without
    those of other owners.
    """


ANY: frozenset[PolicyKind] = frozenset(PolicyKind)
"""Kinds of policies that suit a metric without a list of kinds."""

_EXAMPLES = {PolicyKind.EQUALISES: defaults.POLICY, PolicyKind.MAPS: 'thesis'}


def pairing_warning(
    metric: str, suits: Set[PolicyKind], policy: str, kind: PolicyKind | None
) -> str:
    """Return a warning that users may get less with a metric and policy than
    without agents.

    :param metric: name of the metric.
    :param suits: kinds of policies that suit the metric.
    :param policy: name of the policy.
    :param kind: kind of the policy; ``None`` if unknown.
    :returns: a sentence without its full stop; empty if the policy suits the
        metric, or if that is unknown.
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
    """Return whether a value is a set of kinds of policies."""
    return isinstance(suits, Set) and all(map(_is_kind, suits))


def may_be_kind(kind: object) -> bool:
    """Return whether a value is a kind of policies, or ``None``."""
    return kind is None or _is_kind(kind)


def _is_kind(value: object) -> bool:
    return isinstance(value, PolicyKind)
