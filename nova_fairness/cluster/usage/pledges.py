# SPDX-License-Identifier: Apache-2.0

"""Use and shares of groups that have one pledge for batch system and cloud.

At intervals, the batch system reports the use of jobs since the last report.
After a crash, the next leader continues there: nothing is charged twice or
left out. Shares are stored before they are set in the batch system, so that a
share that this service set is not mistaken for an original share.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np
from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.batch import system
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import border
from nova_fairness.model import cluster
from nova_fairness.model import pledge
from nova_fairness.model import wording
from nova_fairness.planners.border import pledges

LOG = logging.getLogger(__name__)

EVERY_S = 300.0
"""Default number of seconds between two reads of batch accounts. Half-lives
are hours to months, and Slurm computes shares every 300 s
(PriorityCalcPeriod).
"""

LONGEST_S = 7 * 86400.0
"""Largest age of the use of jobs that is read, seconds."""


class PledgeKeeper:
    """Charges groups for their batch jobs, and adjusts their batch shares.

    :param store: store of use and shares.
    :param batch: the batch system.
    :param half_life_s: half-life of the ledger, seconds, > 0.
    :param every_s: seconds between two reads of batch accounts.
    """

    def __init__(
        self,
        store: store_module.Store,
        batch: system.BatchSystem,
        half_life_s: float,
        every_s: float = EVERY_S,
    ) -> None:
        self._every_s = every_s
        self._store = store
        self._batch = batch
        self._half_life_s = half_life_s
        self._looked_at: float | None = None
        self._beside: pledges.BatchUse | None = None
        self._told: tuple[str, ...] = ()
        self._uncharged: tuple[str, ...] = ()
        self.standings: tuple[pledges.PledgeStanding, ...] = ()

    def counted(
        self, snapshot: cluster.ClusterSnapshot
    ) -> cluster.ClusterSnapshot:
        """Return the snapshot of the queue, with the use of groups in the
        batch system added.
        """
        beside = self._beside
        return pledges.with_batch_use(snapshot, beside) if beside else snapshot

    def forget(self) -> None:
        """Clear the state of this object, because another process may have
        led; the next cycle reads the state again.
        """
        self._looked_at = self._beside = None
        self.standings, self._told, self._uncharged = (), (), ()

    def cycle(
        self,
        groups: Sequence[pledge.PledgeGroup],
        hosts: Sequence[border.SharedHost],
        snapshot: cluster.ClusterSnapshot,
        now: float,
        epoch: int,
    ) -> tuple[str, ...]:
        """Read the accounts of the batch system if the interval has passed,
        and set their shares.

        :param groups: groups with pledges; without groups, original shares are
            restored, and the queue counts only use of the cloud.
        :param hosts: hosts between batch system and cloud.
        :param snapshot: snapshot of the queue.
        :param now: seconds of the epoch.
        :param epoch: epoch of the leader.
        :returns: sentences on why shares are not adjusted, or jobs are not
            charged.
        :raises ClusterError: if the store fails.
        """
        last = self._looked_at
        if last is not None and 0 <= now - last < self._every_s:
            return self._told
        kept = self._store.pledges.read()
        if not groups and not kept.found:
            self.forget()
            return ()
        try:
            wrong = self._update_groups(
                groups, hosts, snapshot, now, epoch, kept
            )
        except exception.BatchError as error:
            wrong = [str(error)]
        self._looked_at = now
        unshared = (
            f'shares of both sides stay as they are: {each}' for each in wrong
        )
        self._told = (*unshared, *self._uncharged)
        return self._told

    def _update_groups(
        self,
        groups: Sequence[pledge.PledgeGroup],
        hosts: Sequence[border.SharedHost],
        snapshot: cluster.ClusterSnapshot,
        now: float,
        epoch: int,
        kept: pledges.BatchMemory,
    ) -> list[str]:
        """Charge groups, then store and set shares.

        :returns: sentences about errors.
        :raises BatchError: if the batch system does not answer.
        """
        shares = self._batch.shares()
        owner = pledges.account_by_batch_account(groups, shares)
        if not groups:
            self._beside = None
        else:
            kept = self._charge_jobs(kept, owner, hosts, now)
        wrong = pledges.adjustment_faults(
            groups, snapshot.accounts, shares, kept
        )
        stands: tuple[pledges.PledgeStanding, ...] = ()
        give: dict[str, int] = {}
        if not wrong:
            cloud = self._cloud_use(snapshot, hosts)
            stands = pledges.standings(
                groups, snapshot.accounts, shares, kept, cloud
            )
            give = pledges.shares_to_restore(groups, shares, kept)
            give |= pledges.shares_to_set(stands, shares)
            kept = pledges.with_original_shares(kept, stands, give, shares)
        self._store.pledges.write(kept, epoch)
        self.standings = stands
        return wrong + self._set_batch_shares(give)

    def _charge_jobs(
        self,
        kept: pledges.BatchMemory,
        owner: Mapping[str, str],
        hosts: Sequence[border.SharedHost],
        now: float,
    ) -> pledges.BatchMemory:
        """Charge jobs since the last read, and provide their use for the
        queue.
        """
        since = max(kept.at or now, now - LONGEST_S)
        found = self._batch.accounting(since, now)
        self._uncharged = found.faults
        kept, lacks = pledges.charge_jobs(
            kept,
            found.jobs,
            owner,
            now,
            self._half_life_s,
            sum(each.cores for each in hosts),
        )
        self._beside = pledges.BatchUse(
            kept.use, lacks, _cloud_host_names(hosts)
        )
        return kept

    def _cloud_use(
        self,
        snapshot: cluster.ClusterSnapshot,
        hosts: Sequence[border.SharedHost],
    ) -> dict[str, float]:
        """Return the use of the cloud by accounts, as parts of the hosts
        between batch system and cloud.
        """
        use = {
            name: np.array([parts.get(each, 0.0) for each in snapshot.classes])
            for name, parts in self._store.read_ledger().parts.items()
        }
        return pledges.of_cloud(snapshot, use, _cloud_host_names(hosts))

    def _set_batch_shares(self, give: Mapping[str, int]) -> list[str]:
        """Set shares of batch accounts one by one. Returns sentences about
        errors.
        """
        wrong = []
        for account, share in sorted(give.items()):
            try:
                self._batch.set_share(account, share)
            except exception.BatchError as error:
                wrong.append(f'account {account}: {error}')
            else:
                LOG.info(
                    'account %s has %s of batch now',
                    account,
                    wording.counted(share, 'share'),
                )
        return wrong


def _cloud_host_names(hosts: Iterable[border.SharedHost]) -> frozenset[str]:
    return frozenset(each.cloud for each in hosts)
