# SPDX-License-Identifier: Apache-2.0

"""Pairs of nodes that could exchange reports, at each time of a run."""

from collections.abc import Iterable
from collections.abc import Sequence

from fairness_lab.results import recording

LEAVING = frozenset({'kill-agent', 'freeze-agent', 'cut'})
"""Events after which the others hear nothing more of a node."""

RETURNING = {
    'start-agent': 'kill-agent',
    'thaw-agent': 'freeze-agent',
    'heal': 'cut',
}
"""Events that undo one of the others."""

_LATE = 'kill-agent'
"""An agent that starts late is as one that was killed before."""


class Reach:
    """Groups of nodes that can exchange reports.

    :param nodes: names.
    :param events: of the recording, in the order of time.
    :param agents: whether agents run at all.
    """

    def __init__(
        self,
        nodes: Iterable[str],
        events: Sequence[recording.EventRow],
        *,
        agents: bool,
    ) -> None:
        self._nodes = tuple(nodes)
        self._events = events if agents else ()
        self._late = frozenset(
            node for node in self._nodes if self._joins_late(node)
        )

    def groups(self, t_s: float) -> tuple[tuple[str, ...], ...]:
        """Groups of nodes at a moment; a single node is a group, too."""
        gone = self._unreachable_nodes(t_s)
        together = tuple(node for node in self._nodes if node not in gone)
        alone = tuple((node,) for node in self._nodes if node in gone)
        return ((together,) if together else ()) + alone

    def _unreachable_nodes(self, t_s: float) -> set[str]:
        why: dict[str, set[str]] = {node: set() for node in self._nodes}
        for node in self._late:
            why[node].add(_LATE)
        for event in self._events:
            if event.t_s > t_s or event.subject not in why:
                continue
            if event.event in LEAVING:
                why[event.subject].add(event.event)
            elif event.event in RETURNING:
                why[event.subject].discard(RETURNING[event.event])
        return {node for node, reasons in why.items() if reasons}

    def _joins_late(self, node: str) -> bool:
        first = (
            event.event
            for event in self._events
            if event.subject == node and event.event.endswith('-agent')
        )
        return next(first, '') == 'start-agent'
