# SPDX-License-Identifier: Apache-2.0

"""Notifications of a round, compared with the one before.

The payloads are documented and versioned; see the page of notifications.
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
"""Of all payloads. Minor: fields were added."""

MOST_PEERS = 500
"""Names of peers in one notification."""

THROTTLED = 0.25
"""Weight from which down a VM counts as throttled; 1 is neutral.

A VM has then a quarter of the service of a usual one, which users notice. The
smallest weight that is allowed counts in any case.
"""

RELIEF = 1.1
"""Times the level to which a weight has to rise to be relieved: one that
swings around it is told once."""

INFO, WARN = 'info', 'warn'


@dataclasses.dataclass(frozen=True)
class Notice:
    """One notification.

    :ivar event: its type, such as ``fairness.host.pause``.
    :ivar priority: :data:`INFO` or :data:`WARN`.
    :ivar payload: JSON types.
    """

    event: str
    priority: str
    payload: Mapping[str, Any]


class RoundWatch:
    """Compares each round with the one before; the first says nothing."""

    def __init__(self) -> None:
        self._before: round_model.Round | None = None
        self._peers: frozenset[str] | None = None
        self._throttled: frozenset[allocation.Knob] = frozenset()

    def notices(
        self, done: round_model.Round, smallest: usage_model.Scalars
    ) -> tuple[Notice, ...]:
        """The notices that are worth telling.

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
                        **_asked(done.chosen_by),
                    },
                )
        if done.paused != before.paused:
            what = 'pause' if done.paused else 'resume'
            by = _asked(done.paused_by)
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
        # What rose a little only is neither told as relieved nor told anew.
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
    """Knobs that are steered and have at most a level."""
    if weights is None or done.decided is None:
        return frozenset()
    # What is the smallest possible may be a rounding above it.
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


def _asked(by: caller.Asker) -> Mapping[str, Any]:
    """Name the sender of a request; a field that is not known is null."""
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
