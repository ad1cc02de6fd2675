# SPDX-License-Identifier: Apache-2.0

"""Distance of accounts from their shares, by the formulas of known systems.

The functions take a :class:`.tree.AccountTree`, and the use of each account
and all below it. They know no requests. An account with a share of 0 comes
last.
"""

from collections.abc import Iterable

import numpy as np

from nova_fairness.shares import tree as tree_module

Floats = tree_module.Floats
Bools = tree_module.Bools


def normalised_use(tree: tree_module.AccountTree, use: Floats) -> Floats:
    """(a,) Use of each account as a part of the use of all, 0 to 1.

    :param use: (a,) use of each account and all below it, >= 0.
    """
    total = use[tree.parent == tree_module.ROOT].sum()
    return use / total if total > 0 else np.zeros(len(use))


def effective(
    tree: tree_module.AccountTree, use: Floats, part: Floats
) -> Floats:
    """(a,) Effective use of an account: its own and a part of its siblings'.

    ``U_E = U_A + (U_E of the parent - U_A) S / S of the siblings`` and at the
    top ``U_E = U_A`` (Slurm, "classic" fair share; Synergy for two levels).

    :param use: (a,) use of each account and all below it, as a part of all
        use, 0 to 1.
    :param part: (a,) part of the cloud; see :meth:`.tree.AccountTree.part`.
    """
    effective = use.copy()
    for at, up in enumerate(tree.parent.tolist()):
        if up != tree_module.ROOT and part[up] > 0:
            among = part[at] / part[up]
            effective[at] += (effective[up] - use[at]) * among
    return effective


def classic_factor(
    tree: tree_module.AccountTree,
    use: Floats,
    part: Floats,
    damping: float = 1.0,
) -> Floats:
    """(a,) ``2^(-U_E / S / d)``, 0 to 1: 0.5 is exactly the share.

    This is Slurm's fair-share factor, and Synergy's for each resource.

    :param damping: > 0; larger reacts less (``FairShareDampeningFactor``).
    """
    counted = effective(tree, use, part)
    over = np.full(len(tree), np.inf)
    np.divide(counted, part, out=over, where=part > 0)
    factor: Floats = np.exp2(-over / damping)
    return factor


def fair_tree_rank(
    tree: tree_module.AccountTree, use: Floats, members: Bools
) -> Floats:
    """(a,) Rank of every member divided by the number of members.

    This is Slurm's fair tree: depth first, with the largest
    :func:`level_fair_share` first on each level. So if an account is before
    its sibling, all accounts below it are before all below the sibling.
    Members that tie have one rank. Accounts that tie are treated as one
    account with the children of both; children keep the level that they have
    below their own parent. A member that ties with an account has the rank of
    the account's first member.

    :param use: (a,) use of each account and all below it, >= 0.
    :param members: (a,) whether each account is ranked: those with requests.
    :returns: above 0 to 1; 0 for accounts that are not members.
    """
    level = level_fair_share(tree, use)
    children = tree.children()
    total = int(members.sum())
    factor = np.zeros(len(tree))
    rank = left = total
    stack = _groups_of_equals(children[tree_module.ROOT], level, is_tied=False)
    while stack:
        group, is_tied = stack.pop()
        ranked = [at for at in group if members[at]]
        if ranked and not is_tied:
            rank = left
        factor[ranked] = rank / max(total, 1)
        left -= len(ranked)
        below = [child for at in group for child in children[at]]
        stack += _groups_of_equals(below, level, is_tied or bool(ranked))
    return factor


def level_fair_share(tree: tree_module.AccountTree, use: Floats) -> Floats:
    """(a,) ``S / U`` of every account among its siblings, 0 to infinity.

    S is the account's part of the shares of all siblings, U its part of the
    use of its parent. The result is 0 without a share, and infinity for an
    account with a share and no use (Slurm).

    :param use: (a,) use of each account and all below it, >= 0.
    """
    share = _safe_quotient(tree.share, tree.share_of_siblings())
    top = use[tree.parent == tree_module.ROOT].sum()
    # The last row is that of the virtual parent of the top accounts.
    used = _safe_quotient(use, np.append(use, top)[tree.parent])
    level = np.full(len(tree), np.inf)
    np.divide(share, used, out=level, where=used > 0)
    level[share == 0] = 0.0
    return level


_ALIKE = 1e-12
"""Largest relative difference of levels that tie, because of rounding."""


def _groups_of_equals(
    siblings: Iterable[int], level: Floats, is_tied: bool
) -> list[tuple[list[int], bool]]:
    """Groups of siblings with the same level, the largest level last.

    :param is_tied: whether the first group has the rank of earlier members.
    :returns: the groups, and whether each has the rank of earlier members.
    """
    found: list[tuple[list[int], bool]] = []
    first = np.nan
    for at in sorted(siblings, key=lambda at: -level[at]):
        here = float(level[at])
        # The difference of two infinities is not a number.
        if here == first or first - here <= _ALIKE * first < np.inf:
            found[-1][0].append(at)
        else:
            found.append(([at], is_tied and not found))
            first = here
    return found[::-1]


def _safe_quotient(amount: Floats, by: Floats) -> Floats:
    """(a,) A quotient; 0 where the divisor is 0."""
    return np.divide(amount, by, out=np.zeros(len(amount)), where=by > 0)


def dominant_share(
    use: Floats, nominal: Floats, lendable: Floats, weight: Floats
) -> Floats:
    """(a,) Largest borrowed part of the lendable amounts, per mille.

    This is Kueue's dominant resource share (KEP-1714): over the classes the
    largest ``1000 x max(0, use - nominal) / lendable``, divided by the weight.

    :param use: (a, c) use, including the amounts of the request.
    :param nominal: (a, c) nominal quotas.
    :param lendable: (c,) amounts that all accounts could lend; a class
        without any does not count.
    :param weight: (a,) weights, >= 0; the result is infinite for a borrower
        with a weight of 0.
    """
    borrowed = np.maximum(use - nominal, 0.0)
    part = np.zeros(borrowed.shape)
    np.divide(borrowed, lendable, out=part, where=lendable > 0)
    share = 1000 * part.max(axis=1, initial=0.0)
    result = np.where(share > 0, np.inf, 0.0)
    np.divide(share, weight, out=result, where=weight > 0)
    return result


def fass_factor(buckets: Floats, totals: Floats, share: Floats) -> Floats:
    """(a,) ``2^(-h / H / share)`` over three periods, 0 to 1 (FaSS).

    ``h = (h0 - h1) + (h1 - h2) / 2 + (h2 - h3) / 4``: each older period
    counts half.

    :param buckets: (a, 4) use up to the end of period k back from now.
    :param totals: (4,) sums of ``buckets`` over all accounts. FaSS as
        published takes the row of the first account by mistake.
    :param share: (a,) part of all shares, 0 to 1.
    """
    halved = np.array([1.0, 0.5, 0.25])
    use = -np.diff(buckets, axis=1) @ halved
    total = float(-np.diff(totals) @ halved)
    ratio = use / total if total > 0 else np.zeros(len(use))
    over = np.full(len(use), np.inf)
    np.divide(ratio, share, out=over, where=share > 0)
    factor: Floats = np.exp2(-over)
    return factor


def excess_over_desired(amounts: Floats, desired: Floats) -> Floats:
    """(a,) Excess of each account, -1 to 1: current minus desired part.

    This is Cloud Scheduler's ``diff_types``: the current part is the product
    of the sums of the classes that count, divided by the sum of these
    products. It distorts: twice as much of two classes counts four times.

    :param amounts: (a, k) sums of each class that counts, or of servers.
    :param desired: (a,) desired part of the cloud, 0 to 1; without a desired
        part, an account that uses anything has an excess of 1.
    """
    current = amounts.prod(axis=1)
    total = current.sum()
    part = current / total if total > 0 else np.zeros(len(current))
    return np.where(desired > 0, part - desired, np.where(part > 0, 1.0, 0.0))
