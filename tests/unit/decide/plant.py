# SPDX-License-Identifier: Apache-2.0

"""A simulated node for the tests of policies: one kind of resource, CPU.

The kernel's part is a weighted, work-conserving division with limited
demand; the agent's part is what measure does with its usage: exponential
smoothing and a metric. Noise is multiplicative, on what is measured.
"""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses

import numpy as np

from nova_fairness.decide import contention
from nova_fairness.decide import round as decide_round
from nova_fairness.decide.policies import feedback
from nova_fairness.model import instance
from nova_fairness.model import node
from nova_fairness.model import resources
from nova_fairness.model import usage

CPU = resources.CONTROLS.index(resources.ResourceControl.CPU)
CPU_TIME = resources.RESOURCES.index('cpu_time')
HUNGRY = 1.0
IDLE = 0.0


def divided(weights, demands, supply):
    """What each VM gets: weighted max-min with limited demand."""
    got = np.zeros(len(weights))
    open_ = demands > 0
    left = supply
    while open_.any() and left > 1e-12:
        part = np.where(open_, weights, 0.0)
        offer = got + left * part / part.sum()
        done = open_ & (offer >= demands)
        if not done.any():
            return np.where(open_, offer, got)
        left -= float((demands - got)[done].sum())
        got[done] = demands[done]
        open_ &= ~done
    return got


def dominant_share(shares, user, users):
    """Heaviness of DominantShareMetric on a cloud of this one node."""
    return np.bincount(user, shares, users)[user] * users


def greediness(shares, user, users):
    """Heaviness of GreedinessMetric: VMs of one vCPU, CPU alone is used."""
    count, kinds = len(shares), len(resources.RESOURCES)
    norm = users / kinds
    excess = shares - 1 / count
    beyond, unused = excess.clip(min=0), excess.clip(max=0)
    left = -unused.sum()
    ratio = max(-1.0, -beyond.sum() / left) if left > 0 else -beyond.sum()
    own = (beyond - unused * max(-1.0, ratio)) * norm
    surplus = np.bincount(user, minlength=users) * kinds * norm / count - 1
    return (np.bincount(user, own, users) + surplus)[user] + own


@dataclasses.dataclass
class Trace:
    """What happened: one row per round."""

    shares: np.ndarray
    weights: np.ndarray
    wanting: np.ndarray
    contended: np.ndarray

    def of_user(self, users: Sequence[int], user: int) -> np.ndarray:
        return self.shares[:, np.array(users) == user].sum(axis=1)


def machine(cpus=1):
    return node.NodeResources(
        'n', tuple(range(cpus)), 1.0, resources.RESOURCES.vector(cpu_time=cpus)
    )


def guests(count, paused=frozenset(), vcpus=1):
    return tuple(
        instance.Incarnation(
            instance.Instance(f'vm-{row:03}', f'd{row}', vcpus, 2**28),
            pid=row + 1,
            start_ticks=1,
            paused=row in paused,
        )
        for row in range(count)
    )


def run(
    users: Sequence[int],
    demand: Callable[[int], Sequence[float]],
    *,
    rounds: int = 60,
    metric=dominant_share,
    policy=None,
    noise: float = 0.01,
    decay: float = 0.5,
    seed: int = 1,
    start=None,
    max_weight_ratio: float = 20.0,
    largest_step: float = 4.0,
    user_count: int | None = None,
    tolerance: float = 0.01,
    elsewhere: Callable[[int], Sequence[float]] | None = None,
) -> Trace:
    """Run one node: an interval passes, then the policy decides.

    :param demand: round -> part of a CPU that each VM would use alone.
    :param elsewhere: round -> heaviness that each VM has from other nodes.
    """
    generator = np.random.default_rng(seed)
    policy = policy or feedback.FeedbackPolicy()
    vms, host, user = guests(len(users)), machine(), np.array(users)
    neutral = np.ones((len(users), len(resources.CONTROLS)))
    weights = neutral.copy()
    weights[:, CPU] = 1.0 if start is None else start
    memory, smoothed, rows = {}, None, []
    for step in range(rounds):
        wish = np.array(demand(step), dtype=float)
        shares = divided(weights[:, CPU], wish, 1.0)
        seen = shares * (1 + noise * generator.standard_normal(len(users)))
        seen = seen.clip(min=0)
        smoothed = (
            seen if smoothed is None else smoothed * (1 - decay) + seen * decay
        )
        heavy = metric(smoothed, user, user_count or int(user.max()) + 1)
        if elsewhere is not None:
            heavy = heavy + np.array(elsewhere(step), dtype=float)
        amounts = np.zeros((len(users), len(resources.RESOURCES)))
        amounts[:, CPU_TIME] = smoothed * 10
        # Work that was not done is still there: who gets less than he wants
        # waits whenever he does not run. 2 % are the host's.
        short = wish - shares > 1e-3
        stall = np.where(short, 1 - shares, 0.02 * (wish > 0))
        situation = contention.situation(
            usage.Usage(
                10.0, vms, amounts, np.ones(len(users), dtype=bool), stall
            ),
            heavy,
            user,
            host,
        )
        rows.append(
            (
                shares,
                weights[:, CPU].copy(),
                situation.wanting[:, CPU],
                situation.contended[CPU],
            )
        )
        wanted, memory = policy(situation, weights, memory, 10.0)
        limited = decide_round.bound_weights(
            wanted, weights, max_weight_ratio, largest_step
        )
        # The kernel takes whole units, and small changes are not written.
        limited = np.round(limited * 1024) / 1024
        small = np.abs(limited - weights) <= tolerance * weights
        weights = np.where(small, weights, limited)
    return Trace(*(np.array(column) for column in zip(*rows, strict=True)))
