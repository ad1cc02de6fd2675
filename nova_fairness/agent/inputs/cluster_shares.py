# SPDX-License-Identifier: Apache-2.0

"""The shares of the cluster's queue as weights of users on this node.

The agent queries the cluster service between rounds. The last answer applies
until the next one, also after a restart.
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

MIN_WEIGHT = 0.001
"""Smallest weight, also of owners without a share."""

_TIMEOUT_S = 10.0
_TREE = 'the tree'


@dataclasses.dataclass(frozen=True, slots=True)
class _Account:
    name: limits.Name
    parent: limits.Name | None
    share: Annotated[float, msgspec.Meta(ge=0, le=tree_module.LARGEST_SHARE)]
    fair_share: Annotated[float, msgspec.Meta(ge=0, le=1)]


@dataclasses.dataclass(frozen=True, slots=True)
class _TreeAnswer:
    accounts: tuple[_Account, ...]


class Shares:
    """The accounts of one version of the share tree.

    :param value: the answer of the cluster service; it is validated.
    :raises ReportRefused: if the answer is no share tree.
    :ivar version: of the tree, computed from its content.
    """

    def __init__(self, value: object) -> None:
        told = limits.convert(value, _TreeAnswer, 'the share tree')
        try:
            self._tree = tree_module.AccountTree(
                cluster.Account(each.name, each.parent, each.share)
                for each in told.accounts
            )
        except exception.BadShares as error:
            raise exception.ReportRefused(
                'malformed', f'the share tree: {error}'
            ) from error
        self.version = tree_module.accounts_hash(
            [dataclasses.asdict(each) for each in told.accounts]
        )
        factors = {each.name: each.fair_share for each in told.accounts}
        self._factors = np.array([factors[name] for name in self._tree.names])

    def __len__(self) -> int:
        return len(self._tree)

    @functools.cached_property
    def _rows_by_owner(self) -> Mapping[str, list[int]]:
        """The rows of each project, and of each user in all of their
        projects.
        """
        rows: dict[str, list[int]] = {}
        for row, name in enumerate(self._tree.names):
            rows.setdefault(name.rpartition('/')[2], []).append(row)
        return rows

    def weights(
        self, owners: Iterable[str], *, with_history: bool
    ) -> Mapping[str, float]:
        """Return the weights of owners, with a mean of 1.

        :param owners: ids of users or projects; unknown ones are left out.
        :param with_history: whether past use reduces a weight.
        :returns: by id, at least :data:`MIN_WEIGHT`.
        """
        found = {
            owner: self._rows_by_owner[owner]
            for owner in owners
            if owner in self._rows_by_owner
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
            owner: max(each * scale, MIN_WEIGHT)
            for owner, each in parts.items()
        }


Ask = Callable[[str | None], object]
"""Queries the share tree; its argument is the version known already."""


class ClusterShares(nova_facts.QueryingCloud):
    """Adds the shares of the cluster's queue to the facts of a cloud.

    :param base: the facts that this class extends.
    :param query: queries the cluster service; may block, and raise anything.
    :param file: stores the last answer.
    :param query_interval_s: seconds between two queries.
    :param with_history: whether past use reduces a weight.
    :param signatures: checks who signed an answer; ``None`` where peers have
        no keys.
    """

    def __init__(
        self,
        base: nova_facts.CloudFacts,
        query: Ask,
        file: state_file.StateFile,
        query_interval_s: float,
        *,
        with_history: bool,
        signatures: signatures_module.Signatures | None = None,
    ) -> None:
        super().__init__(
            base,
            lookup.Lookup(
                'shares of the queue', self._update, query_interval_s
            ),
        )
        self._signatures = signatures
        self._ask = query
        self._file = file
        self._with_history = with_history
        self._shares: Shares | None = file.kept(
            Shares, None, 'shares count when the cluster service says them'
        )

    def weights(self, owners: Iterable[str]) -> Mapping[str, float]:
        """Return weights by the last answer of the service; never blocks."""
        self._lookup.known([_TREE])
        if self._shares is None:
            return {}
        return self._shares.weights(owners, with_history=self._with_history)

    def _update(self, _: str) -> str:
        """Query the tree and store a new one; return its version."""
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
            'Shares of %s are in force now: version %s of the share tree',
            wording.counted(len(shares), 'account'),
            shares.version[:8],
        )
        return shares.version


def connect(
    conf: cfg.ConfigOpts,
    base: nova_facts.CloudFacts,
    peering: peering_module.Peering,
    state_path: pathlib.Path,
) -> nova_facts.CloudFacts:
    """Add the queue's shares to a cloud if ``quota_source`` selects them.

    :param base: facts of the cloud without shares.
    :raises ConfigurationError: if there is no cluster service to query.
    """
    wanted = conf.fairness.quota_source
    if wanted not in {'shares', 'history'}:
        return base
    client = peering.cluster(_TIMEOUT_S)
    return ClusterShares(
        base,
        lambda known: client.call('get_tree', known=known),
        state_file.StateFile(state_path / 'shares.json'),
        # So that an answer during a round applies in the next.
        conf.fairness.interval / 2,
        with_history=wanted == 'history',
        signatures=signatures_module.of(conf, conf.fairness_exchange.domain),
    )
