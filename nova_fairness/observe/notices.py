# SPDX-License-Identifier: Apache-2.0

"""Notifications about the differences between a round and the previous one.

The payloads are versioned and documented on the page of notifications.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
from typing import Any

import numpy as np

from nova_fairness.model import allocation
from nova_fairness.model import caller
from nova_fairness.model import moments
from nova_fairness.model import report
from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from nova_fairness.model import usage as usage_model
from nova_fairness.observe import peers

VERSION = '1.1'
"""Version of all payloads of rounds. The minor version rises when fields are
added.
"""

MOST_PEERS = 500
"""Largest number of peers in one notification."""

THROTTLED = 0.25
"""Largest weight of a throttled VM; 1 is neutral.

Such a VM has a quarter of the usual service, which users notice. A VM with the
smallest permitted weight always counts as throttled.
"""

RELIEF = 1.1
"""Factor of the level above which a throttled VM counts as relieved. It
prevents repeated notifications when a weight oscillates around the level.
"""

INFO, WARN = 'info', 'warn'


@dataclasses.dataclass(frozen=True)
class Notice:
    """One notification.

    :ivar event: event type, such as ``fairness.host.pause``.
    :ivar priority: :data:`INFO` or :data:`WARN`.
    :ivar payload: payload of JSON types.
    """

    event: str
    priority: str
    payload: Mapping[str, Any]


class RoundWatch:
    """Compares each round with the previous one; the first round gives no
    notification.
    """

    def __init__(self) -> None:
        self._before: round_model.Round | None = None
        self._peers: frozenset[str] | None = None
        self._throttled: frozenset[allocation.Knob] = frozenset()

    def notices(
        self, done: round_model.Round, smallest: usage_model.Scalars
    ) -> tuple[Notice, ...]:
        """Return the notifications of a round.

        :param smallest: (c,) the smallest weight of each control.
        """
        found = (
            *self._state(done),
            *self._of_peers(done),
            *self._of_weights(done, smallest),
        )
        self._before = done
        return tuple(
            dataclasses.replace(
                item, payload={**_common(done), **item.payload}
            )
            for item in found
        )

    def _state(self, done: round_model.Round) -> Iterator[Notice]:
        before = self._before
        if before is None:
            return
        for kind in ('metric', 'policy'):
            now, then = getattr(done, kind), getattr(before, kind)
            if now != then:
                yield Notice(
                    f'fairness.{kind}.set',
                    INFO,
                    {
                        kind: now,
                        'previous': then,
                        'epoch': done.epoch,
                        **_caller_fields(done.chosen_by),
                    },
                )
        if done.paused != before.paused:
            what = 'pause' if done.paused else 'resume'
            by = _caller_fields(done.paused_by)
            yield Notice(f'fairness.host.{what}', INFO, by)
        for name in sorted(done.quarantined.keys() - before.quarantined):
            yield Notice(
                'fairness.plugin.quarantined',
                WARN,
                {'plugin': name, 'reason': done.quarantined[name]},
            )

    def _of_peers(self, done: round_model.Round) -> Iterator[Notice]:
        if done.measured is None:
            return
        view = done.measured.view
        before = self._peers
        self._peers = frozenset(view.reports) - {done.node.host}
        if before is None:
            return
        if lost := sorted(before - self._peers):
            yield Notice('fairness.peer.lost', WARN, _lost(lost, view))
        if found := sorted(self._peers - before):
            told = [{'host': host} for host in found[:MOST_PEERS]]
            yield Notice(
                'fairness.peer.found',
                INFO,
                {'peers': told, 'peers_count': len(found)},
            )

    def _of_weights(
        self, done: round_model.Round, smallest: usage_model.Scalars
    ) -> Iterator[Notice]:
        before, is_first = self._throttled, self._before is None
        if done.decided is None:
            return
        level = np.maximum(THROTTLED, smallest)
        weights = done.decided.weights if done.enforced else None
        now = _below(done, weights, level)
        # A weight that rose only a little gives no notification.
        still = _below(done, weights, level * RELIEF) & before
        self._throttled = now | still
        if is_first:
            return
        for knob in _sorted(self._throttled - before):
            yield _of_knob('throttled', done, knob, level)
        for knob in _sorted(before - self._throttled):
            if any(item.key == knob.incarnation for item in done.incarnations):
                yield _of_knob('relieved', done, knob, level)


def _below(
    done: round_model.Round,
    weights: allocation.Weights | None,
    level: usage_model.Scalars,
) -> frozenset[allocation.Knob]:
    """Return the controls of VMs with enforced weights that do not exceed a
    level.
    """
    if weights is None or done.decided is None:
        return frozenset()
    # The smallest possible weight may exceed the level by rounding.
    rows, places = np.nonzero(weights <= level * (1 + 1e-9))
    knobs = (
        allocation.Knob(done.incarnations[row].key, resources.CONTROLS[place])
        for row, place in zip(rows.tolist(), places.tolist(), strict=True)
    )
    wanted, apart = done.decided.wanted, done.decided.best_effort
    return frozenset(
        knob
        for knob in knobs
        if knob in wanted and knob.incarnation not in apart
    )


def _sorted(knobs: frozenset[allocation.Knob]) -> list[allocation.Knob]:
    return sorted(
        knobs, key=lambda knob: (knob.incarnation, knob.control.value)
    )


def _of_knob(
    what: str,
    done: round_model.Round,
    knob: allocation.Knob,
    level: usage_model.Scalars,
) -> Notice:
    place = resources.CONTROLS.index(knob.control)
    row = [item.key for item in done.incarnations].index(knob.incarnation)
    vm = done.incarnations[row].instance
    weight = None if done.decided is None else done.decided.weights[row, place]
    return Notice(
        f'fairness.instance.{what}',
        INFO,
        {
            'uuid': vm.uuid,
            'name': vm.display_name or vm.domain_name,
            'user_id': vm.user_id,
            'project_id': vm.project_id,
            'control': knob.control.value,
            'weight_ratio': None if weight is None else float(weight),
            'level_ratio': float(level[place]),
        },
    )


def _caller_fields(by: caller.Asker) -> Mapping[str, Any]:
    """Return the fields of the caller of a change; unknown fields are null."""
    return {
        key: value or None for key, value in dataclasses.asdict(by).items()
    }


def _lost(hosts: list[str], view: report.View) -> Mapping[str, Any]:
    return {
        'peers': [
            {
                'host': host,
                'reason': peers.kind(view.left_out.get(host, report.SILENT)),
            }
            for host in hosts[:MOST_PEERS]
        ],
        'peers_count': len(hosts),
    }


def _common(done: round_model.Round) -> Mapping[str, Any]:
    return {
        'version': VERSION,
        'host': done.node.host,
        'round': done.number,
        'at': moments.stamp(done.wall_s),
    }
