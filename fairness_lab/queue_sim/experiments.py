# SPDX-License-Identifier: Apache-2.0

"""Baadal's published packing, with the planners of this product.

Its requests are not published: sizes and mix are those that it tells of, and
numbers are drawn.
"""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

from fairness_lab.queue_sim import packing
from nova_fairness.planners import weighers
from nova_fairness.planners.consolidation import displacement
from nova_fairness.planners.consolidation import layout
from nova_fairness.planners.consolidation import optimum

Row = dict[str, Any]

_EVERY = 10
"""Requests between two plans (Baadal)."""

_RULES = ('fullest', 'best_fit', 'random', 'cosine', 'dot_product')
_STRATEGIES = {
    **{rule: packing.Strategy(rule) for rule in _RULES},
    **{
        f'{rule}, moved': packing.Strategy(rule, _EVERY)
        for rule in ('fullest', 'best_fit', 'random', 'cosine')
    },
}
_TABLE = (17, 31, 53, 59, 61, 67)
_SEEDS = 5
_MIXES = (0.2, 82), (0.33, 81), (0.5, 80)
"""Part of requests that resize, and servers that run on average."""


def strategies(seed: int) -> list[Row]:
    """Figure 1: hosts in use on average over 1,000 requests."""
    rows = []
    mix = packing.Mix(1000, 100, 0.2, packing.Sizes.POWERS)
    for name, strategy in _STRATEGIES.items():
        run = packing.Packing(mix, strategy, 100, seed)
        bounds = [_host_bound(run) for _ in run.run()]
        rows.append(
            {
                'strategy': name,
                'hosts': round(run.outcome.mean_busy, 2),
                'bound': round(sum(bounds) / len(bounds), 2),
                'moves': run.outcome.moves,
            }
        )
    return rows


def fewest(seed: int) -> list[Row]:
    """Table 1: hosts for 17 to 67 servers of any size, and a bound."""
    mix = packing.Mix(1000, 200, 0.0, packing.Sizes.FLOATS)
    found: dict[int, Row] = {n: {'servers': n} for n in _TABLE}
    tried = {
        'first fit': packing.Strategy(),
        'moved': packing.Strategy(every=1),
        'packed anew': packing.Strategy(every=1, has_repack=True),
    }
    for name, strategy in tried.items():
        run = packing.Packing(mix, strategy, 40, seed)
        left = set(_TABLE)
        for count in run.run():
            if count not in left:
                continue
            left.remove(count)
            found[count][name] = run.outcome.busy[-1]
            if strategy.has_repack:
                found[count]['bound'] = _host_bound(run)
            if not left:
                break
    return list(found.values())


def powers(seed: int) -> list[Row]:
    """Powers of two, 1,000 and 5,000 requests: hosts beside the optimum."""
    rows = []
    for count in (1000, 5000):
        mix = packing.Mix(count, 100, 0.0, packing.Sizes.POWERS)
        strategy = packing.Strategy(every=_EVERY, has_repack=True)
        run = packing.Packing(mix, strategy, 100, seed)
        over = []
        for n, _ in enumerate(run.run(), 1):
            if n % _EVERY == 0:
                busy, bound = run.outcome.busy[-1], _host_bound(run)
                least = bound if busy == bound else run.fewest_hosts_needed()
                over.append((busy - bound, busy - least))
        rows.append(
            {
                'requests': count,
                'plans': len(over),
                'as few as the bound': sum(not each for each, _ in over),
                'optimum': sum(not each for _, each in over),
                'most above': max(each for _, each in over),
            }
        )
    return rows


def refusals(seed: int) -> list[Row]:
    """10,000 requests on 20 hosts, with and without rescue, on average.

    How many of them change the size of a server is not published. One refusal
    more or less changes all that comes after it: requests are drawn again
    several times.
    """
    tried = {
        'without': packing.Strategy(),
        'rescue': packing.Strategy(has_rescue=True),
        'rescue, cosine': packing.Strategy('cosine', has_rescue=True),
        'rescue, moved': packing.Strategy(every=_EVERY, has_rescue=True),
        'rescue, patterns': packing.Strategy(
            has_rescue=True, depth=displacement.Depth(tight=20)
        ),
        'one host as large as all': packing.Strategy(is_one=True),
    }
    rows = []
    for resize, servers in _MIXES:
        mix = packing.Mix(10_000, servers, resize, packing.Sizes.POWERS)
        for name, strategy in tried.items():
            found = []
            for drawn in range(seed, seed + _SEEDS):
                run = packing.Packing(mix, strategy, 20, drawn)
                for _ in run.run():
                    pass
                found.append(run.outcome)
            refused = [each.refused for each in found]
            rows.append(
                {
                    'strategy': name,
                    'resize': resize,
                    'refused': sum(refused) / _SEEDS,
                    'least': min(refused),
                    'most': max(refused),
                    'moves': sum(each.moves for each in found) / _SEEDS,
                }
            )
    return rows


def _host_bound(run: packing.Packing) -> int:
    there = layout.HostLayout(run.snapshot(), weighers.fullest)
    return optimum.lower_bound(there)


EXPERIMENTS: Mapping[str, Callable[[int], list[Row]]] = {
    'strategies': strategies,
    'fewest': fewest,
    'powers': powers,
    'refusals': refusals,
}
"""By name; each is given the seed of all that is drawn."""
