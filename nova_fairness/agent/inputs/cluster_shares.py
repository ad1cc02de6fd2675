# SPDX-License-Identifier: Apache-2.0

"""Shares of the queue as weights of what users get of this node.

The agent asks the cluster service beside the rounds. The last answer counts
until a new one comes, also after a restart, however long the service is away.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import functools
import json
import logging
import pathlib
from typing import Annotated

import msgspec
import numpy as np
from oslo_config import cfg

from nova_fairness import exception
from nova_fairness.agent.comms import peering as peering_module
from nova_fairness.agent.inputs import nova_facts
from nova_fairness.exchange import limits
from nova_fairness.model import cluster
from nova_fairness.model import wording
from nova_fairness.runtime import lookup
from nova_fairness.runtime import signatures as signatures_module
from nova_fairness.runtime import state_file
from nova_fairness.shares import tree as tree_module

LOG = logging.getLogger(__name__)

SMALLEST = 0.001
"""Weight of those who have no share, as the smallest that can be set."""

_TIMEOUT_S = 10.0
_TREE = 'the tree'


@dataclasses.dataclass(frozen=True, slots=True)
class _Account:
    name: limits.Name
    parent: limits.Name | None
    share: Annotated[float, msgspec.Meta(ge=0, le=tree_module.LARGEST_SHARE)]
    fair_share: Annotated[float, msgspec.Meta(ge=0, le=1)]


@dataclasses.dataclass(frozen=True, slots=True)
class _Told:
    accounts: tuple[_Account, ...]


class Shares:
    """Accounts of one version of the share tree.

    :param value: what the cluster service said; nothing is believed.
    :raises ReportRefused: if it is no tree.

    :ivar version: of the tree, whatever the service said of it.
    """

    def __init__(self, value: object) -> None:
        told = limits.converted(value, _Told, 'the share tree')
        try:
            self._tree = tree_module.AccountTree(
                cluster.Account(each.name, each.parent, each.share)
                for each in told.accounts
            )
        except exception.BadShares as error:
            raise exception.ReportRefused(
                'malformed', f'the share tree: {error}'
            ) from error
        self.version = tree_module.version(
            [dataclasses.asdict(each) for each in told.accounts]
        )
        factors = {each.name: each.fair_share for each in told.accounts}
        self._factors = np.array([factors[name] for name in self._tree.names])

    def __len__(self) -> int:
        return len(self._tree)

    @functools.cached_property
    def _rows(self) -> Mapping[str, list[int]]:
        """Accounts of projects, and of users in all of their projects."""
        rows: dict[str, list[int]] = {}
        for row, name in enumerate(self._tree.names):
            rows.setdefault(name.rpartition('/')[2], []).append(row)
        return rows

    def weights(
        self, owners: Iterable[str], *, with_history: bool
    ) -> Mapping[str, float]:
        """Weights of those who are present; on average 1.

        :param owners: ids of users or projects; unknown ones are left out.
        :param with_history: whether what they used before counts.
        :returns: :data:`SMALLEST` or more, by id.
        """
        found = {
            owner: self._rows[owner] for owner in owners if owner in self._rows
        }
        wants = np.zeros(len(self), dtype=np.bool_)
        for rows in found.values():
            wants[rows] = True
        part = self._tree.part(wants)
        if with_history:
            part = part * self._factors
        parts = {
            owner: float(part[rows].sum()) for owner, rows in found.items()
        }
        scale = len(parts) / (sum(parts.values()) or 1.0)
        return {
            owner: max(each * scale, SMALLEST) for owner, each in parts.items()
        }


Ask = Callable[[str | None], object]
"""Asks for the tree if it is not of this version."""


class ClusterShares(nova_facts.AroundLookup):
    """A cloud whose shares are those of the queue.

    :param others: the cloud that knows all else.
    :param ask: asks the cluster service; may block, and raise anything.
    :param file: what it said last.
    :param again_s: after which it is asked again, in seconds.
    :param with_history: whether what was used before counts.
    :param signatures: that judge who said it; ``None`` where peers have no
        keys.
    """

    def __init__(
        self,
        others: nova_facts.CloudFacts,
        ask: Ask,
        file: state_file.StateFile,
        again_s: float,
        *,
        with_history: bool,
        signatures: signatures_module.Signatures | None = None,
    ) -> None:
        super().__init__(
            others, lookup.Lookup('shares of the queue', self._look, again_s)
        )
        self._signatures = signatures
        self._ask = ask
        self._file = file
        self._with_history = with_history
        self._shares: Shares | None = file.kept(
            Shares, None, 'shares count when the cluster service says them'
        )

    def weights(self, owners: Iterable[str]) -> Mapping[str, float]:
        """Weights by what the service said last; never blocks."""
        self._lookup.known([_TREE])
        if self._shares is None:
            return {}
        return self._shares.weights(owners, with_history=self._with_history)

    def _look(self, _: str) -> str:
        """Take over what is new; the version that counts."""
        self._file.retry()
        known = self._shares.version if self._shares else None
        told = self._ask(known)
        if known and isinstance(told, dict) and told.get('version') == known:
            return known
        shares = Shares(told)
        if self._signatures and isinstance(told, dict):
            self._signatures.check_tree(told, shares.version)
        self._file.write(json.dumps(told))
        self._shares = shares
        LOG.info(
            'The shares of %s count now: version %s of the tree',
            wording.counted(len(shares), 'account'),
            shares.version[:8],
        )
        return shares.version


def connect(
    conf: cfg.ConfigOpts,
    others: nova_facts.CloudFacts,
    peering: peering_module.Peering,
    state_path: pathlib.Path,
) -> nova_facts.CloudFacts:
    """The cloud with shares of the queue, if ``quota_source`` says so.

    :param others: the cloud without it.
    :raises ConfigurationError: if there is no cluster service to ask.
    """
    wanted = conf.fairness.quota_source
    if wanted not in {'shares', 'history'}:
        return others
    client = peering.cluster(_TIMEOUT_S)
    return ClusterShares(
        others,
        lambda known: client.call('get_tree', known=known),
        state_file.StateFile(state_path / 'shares.json'),
        # So that what is told in a round counts in the next.
        conf.fairness.interval / 2,
        with_history=wanted == 'history',
        signatures=signatures_module.of(conf, conf.fairness_exchange.domain),
    )
