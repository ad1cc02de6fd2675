# SPDX-License-Identifier: Apache-2.0

"""Reports that are late, lost or old: each node sums what it received."""

import numpy as np
import numpy.typing as npt

from fairness_lab.node_sim import knowledge
from fairness_lab.node_sim import model
from fairness_lab.scenario import chance
from fairness_lab.scenario import cloud as cloud_module
from nova_fairness.measure import metric as metric_base
from nova_fairness.measure import report_expiry
from nova_fairness.model import foresight as foresight_model
from nova_fairness.model import resources

_LOSS, _JITTER = 1, 2


class LinkedKnowledge(knowledge.SimulatedKnowledge):
    """Knowledge of nodes that receive reports late or not at all.

    :param links: the ways of the reports.
    """

    def __init__(
        self,
        cloud: cloud_module.Cloud,
        setup: model.Setup,
        links: cloud_module.Links,
    ) -> None:
        super().__init__(cloud, setup)
        self._links = links
        self._ticks = setup.ticks
        self._travel = int(links.delay.max(initial=0)) + links.jitter
        plugin = setup.policy_plugin
        ahead = plugin is not None and plugin.uses_foresight
        longest = report_expiry.MAX_INTERVALS * self._ticks if ahead else 0.0
        kept = self._travel + int(np.ceil(max(longest, self.max_age))) + 2
        nodes, count = len(cloud.nodes), len(cloud.vms)
        width = len(resources.RESOURCES)
        self._acted = np.zeros((kept, nodes), dtype=np.bool_)
        self._at = np.full((kept, count), knowledge.NEVER, dtype=np.intp)
        self._heavy = np.zeros((kept, count))
        self._used = np.zeros((kept, count, width))
        self._owned = np.zeros((kept, count, width))
        self._wanted = np.zeros((kept, count, width))
        self._version = np.full(
            (nodes, nodes), knowledge.NEVER, dtype=np.int64
        )
        self._arrived = np.full(
            (nodes, nodes), knowledge.NEVER, dtype=np.int64
        )
        self._missing = np.zeros((nodes, nodes))

    def weigh(
        self, batch: knowledge.ActingNodes, tick: int
    ) -> metric_base.Heaviness:
        """Heaviness of VMs by the reports that their own node received."""
        parts = [batch.of_node(int(node)) for node in batch.acting]
        result = np.empty(len(batch.rows))
        own = np.empty(len(batch.rows))
        for part in parts:
            mine = np.searchsorted(batch.rows, part.rows)
            own[mine] = self._own_heaviness(part, tick)
        self._store_reports(batch, own, tick)
        self._deliver_reports(tick)
        for part in parts:
            mine = np.searchsorted(batch.rows, part.rows)
            if part.rows.size:
                told, supply = self._counting_reports(
                    int(part.acting[0]), tick
                )
                result[mine] = self.heaviness_of_treatment(
                    part, own[mine], told, supply
                )
        return result

    def views(
        self, batch: knowledge.ActingNodes, tick: int
    ) -> tuple[foresight_model.SharedView, ...]:
        """Views of acting nodes; nodes with the same reports share one."""
        silent = report_expiry.allowed_silence(self._missing[batch.acting])
        ages = np.maximum(self.max_age, self._ticks * silent)
        known = self._ticks_of_counting_reports(batch.acting, tick, ages)
        rows, group = np.unique(known, axis=0, return_inverse=True)
        found: list[foresight_model.SharedView] = []
        self.searches.begin()
        for number, row in enumerate(rows):
            deciding = np.flatnonzero(group.reshape(-1) == number)
            place = batch.acting[deciding]
            told, _ = self._reports_of_ticks(int(place[0]), row)
            counts = row != knowledge.NEVER
            found += self.views_of(deciding, place, told, counts)
        return tuple(found)

    def _ticks_of_counting_reports(
        self,
        acting: model.Indices,
        tick: int,
        age: float | npt.NDArray[np.float64],
    ) -> model.Indices:
        """Ticks of the newest reports that count, (k, m).

        :param acting: (k,) nodes that acted at this tick.
        :param age: ticks for which reports count; of all or (k, m).
        :returns: :data:`.knowledge.NEVER` for nodes without a report that
            counts.
        """
        arrived = self._arrived[acting]
        counts = (arrived != knowledge.NEVER) & (tick - arrived <= age)
        return np.where(counts, self._version[acting], knowledge.NEVER)

    def _own_heaviness(
        self, part: knowledge.ActingNodes, tick: int
    ) -> metric_base.Heaviness:
        """Run the instance stage with the reports known before the round."""
        if not part.rows.size:
            return np.zeros(0)
        told, supply = self._counting_reports(int(part.acting[0]), tick)
        users = np.union1d(told.user, part.user)
        return self.instance_heaviness(part, supply, len(users))

    def _store_reports(
        self,
        batch: knowledge.ActingNodes,
        own: metric_base.Heaviness,
        tick: int,
    ) -> None:
        self.publish(batch, own, tick)
        slot = tick % len(self._acted)
        self._acted[slot] = False
        self._acted[slot, batch.acting] = True
        self._at[slot] = knowledge.NEVER
        self._at[slot, batch.rows] = batch.node
        self._heavy[slot, batch.rows] = own
        self._used[slot, batch.rows] = batch.usage
        self._owned[slot, batch.rows] = batch.endowment
        self._wanted[slot, batch.rows] = batch.wanted

    def skip(self, tick: int) -> None:
        """Let a tick pass at which no agent acts."""
        slot = tick % len(self._acted)
        self._acted[slot] = False
        self._at[slot] = knowledge.NEVER
        self._deliver_reports(tick)

    def _deliver_reports(self, tick: int) -> None:
        """Deliver the reports that arrive now; a newer report replaces."""
        for back in range(min(self._travel, tick) + 1):
            sent = tick - back
            senders = np.flatnonzero(self._acted[sent % len(self._acted)])
            if not senders.size:
                continue
            arrives = self._is_delivered(senders, sent, back)
            version = self._version[:, senders]
            newer = arrives & (sent > version)
            self._version[:, senders] = np.where(newer, sent, version)
            arrived = self._arrived[:, senders]
            gap = (tick - arrived) / self._ticks
            heard = newer & (arrived != knowledge.NEVER) & (gap > 0)
            part = self._missing[:, senders]
            self._missing[:, senders] = np.where(
                heard, report_expiry.updated_missing_part(part, gap), part
            )
            self._arrived[:, senders] = np.where(newer, tick, arrived)

    def _is_delivered(
        self, senders: model.Indices, sent: int, back: int
    ) -> npt.NDArray[np.bool_]:
        links = self._links
        receivers = np.arange(len(self._version))[:, np.newaxis]
        keys = (sent, receivers, senders[np.newaxis, :])
        travel = links.delay[:, senders]
        if links.jitter:
            drawn = chance.uniform(links.seed, _JITTER, *keys)
            travel = travel + (drawn * (links.jitter + 1)).astype(np.int64)
        lost = chance.uniform(links.seed, _LOSS, *keys)
        arrives = (travel == back) & (lost >= links.loss[:, senders])
        if self.cloud.cut is not None:
            cut = self.cloud.cut[(sent + back) // self._ticks]
            cut_then = self.cloud.cut[sent // self._ticks]
            arrives &= ~cut[:, np.newaxis] & ~(cut | cut_then)[senders]
        arrives[senders, np.arange(len(senders))] = back == 0
        return np.asarray(arrives)

    def _counting_reports(
        self, node: int, tick: int
    ) -> tuple[knowledge.ReportRows, resources.Vector]:
        """Rows of all reports that count at a node, and the supply."""
        version = self._ticks_of_counting_reports(
            np.array([node]), tick, self.max_age
        )[0]
        return self._reports_of_ticks(node, version)

    def _reports_of_ticks(
        self, node: int, version: model.Indices
    ) -> tuple[knowledge.ReportRows, resources.Vector]:
        """Rows of the reports of the given ticks, and the supply."""
        counts = version != knowledge.NEVER
        counts[node] = True
        parts = [
            self._report_rows(int(sent), version)
            for sent in np.unique(version[version != knowledge.NEVER])
        ]
        if not parts:
            parts = [(np.zeros(0, dtype=np.intp), 0)]
        rows = np.concatenate([rows for rows, _ in parts])
        slots = np.repeat([s for _, s in parts], [len(r) for r, _ in parts])
        told = knowledge.ReportRows(
            self.cloud.user_of_vm[rows],
            self._heavy[slots, rows],
            self._used[slots, rows],
            self._owned[slots, rows],
            self._at[slots, rows],
            self._wanted[slots, rows],
            self.cloud.vcpus[rows].astype(np.float64),
            self.cloud.exempt_vms[rows],
        )
        return told, self.supply(np.flatnonzero(counts))

    def _report_rows(
        self, sent: int, version: npt.NDArray[np.int64]
    ) -> tuple[model.Indices, int]:
        slot = sent % len(self._acted)
        rows = np.flatnonzero(self._at[slot] != knowledge.NEVER)
        return rows[version[self._at[slot, rows]] == sent], slot
