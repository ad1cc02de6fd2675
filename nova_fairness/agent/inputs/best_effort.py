# SPDX-License-Identifier: Apache-2.0

"""VMs that get only leftover resources: the preemptible ones.

The cluster service decides this for a request, and Nova does not write it into
libvirt domains. The agent queries the service between rounds. The last answer
applies until the next one, also after a restart.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Sequence
import dataclasses
import json
import logging
import pathlib
from typing import Protocol

from oslo_config import cfg

from nova_fairness.agent.comms import peering as peering_module
from nova_fairness.exchange import limits
from nova_fairness.runtime import lookup
from nova_fairness.runtime import signatures as signatures_module
from nova_fairness.runtime import state_file

LOG = logging.getLogger(__name__)

_TIMEOUT_S = 10.0
_ALL = 'all VMs'
_WHAT = signatures_module.PREEMPTIBLE

Ask = Callable[[Sequence[str]], object]
"""Queries which of some servers are preemptible."""


class BestEffort(Protocol):
    """Provides the VMs that get only leftover resources."""

    def start(self) -> None:
        """Start the queries on another thread; returns at once."""

    def stop(self) -> None:
        """Stop the queries, in bounded time."""

    def subset_of(self, uuids: Collection[str]) -> frozenset[str]:
        """Return which of some VMs get only leftover resources; never
        blocks.
        """


class NoBestEffort:
    """Replacement when the option is off: no VM is best effort."""

    def start(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""

    def subset_of(self, uuids: Collection[str]) -> frozenset[str]:
        """Return no VMs."""
        return frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class _PreemptibleAnswer:
    servers: tuple[limits.Name, ...]


class PreemptibleVms:
    """The VMs that the cluster service calls preemptible.

    :param query: queries the cluster service; may block, and raise anything.
    :param file: stores the last answer.
    :param query_interval_s: seconds between two queries.
    :param signatures: checks who signed an answer; ``None`` where peers have
        no keys.
    """

    def __init__(
        self,
        query: Ask,
        file: state_file.StateFile,
        query_interval_s: float,
        signatures: signatures_module.Signatures | None = None,
    ) -> None:
        self._ask = query
        self._file = file
        self._signatures = signatures
        self._here: tuple[str, ...] = ()
        self._known: frozenset[str] = file.kept(
            _parse_saved,
            frozenset(),
            'VMs are best effort once the cluster service says so',
        )
        self._lookup = lookup.Lookup(_WHAT, self._update, query_interval_s)

    def start(self) -> None:
        """Start the queries on another thread; returns at once."""
        self._lookup.start()

    def stop(self) -> None:
        """Stop the queries, in bounded time."""
        self._lookup.stop()

    def subset_of(self, uuids: Collection[str]) -> frozenset[str]:
        """Return which of some VMs the last answer names; never blocks."""
        self._here = tuple(sorted(uuids))
        self._lookup.known([_ALL])
        return self._known.intersection(uuids)

    def _update(self, _: str) -> frozenset[str]:
        """Query the service, and store a new answer."""
        self._file.retry()
        here = self._here
        known = self._query_preemptible(here) if here else frozenset[str]()
        if known != self._known:
            self._file.write(json.dumps({'servers': sorted(known)}))
            self._known = known
        return known

    def _query_preemptible(self, uuids: Sequence[str]) -> frozenset[str]:
        """Return the preemptible VMs, after a check of the answer.

        :raises ReportRefused: if the answer is malformed or about other
            servers.
        """
        told = self._ask(uuids)
        servers = limits.convert(told, _PreemptibleAnswer, _WHAT).servers
        peering_module.check_answer(
            told, _WHAT, uuids, sorted(servers), self._signatures
        )
        return frozenset(servers)


def _parse_saved(content: object) -> frozenset[str]:
    return frozenset(
        limits.convert(content, _PreemptibleAnswer, _WHAT).servers
    )


def connect(
    conf: cfg.ConfigOpts,
    peering: peering_module.Peering,
    state_path: pathlib.Path,
) -> BestEffort:
    """Create the provider that ``[fairness] best_effort`` selects.

    :raises ConfigurationError: if there is no cluster service to query.
    """
    if not conf.fairness.best_effort:
        return NoBestEffort()
    client = peering.cluster(_TIMEOUT_S)
    return PreemptibleVms(
        lambda servers: client.call('get_preemptible', servers=list(servers)),
        state_file.StateFile(state_path / 'best_effort.json'),
        # So that an answer during a round applies in the next.
        conf.fairness.interval / 2,
        signatures_module.of(conf, conf.fairness_exchange.domain),
    )
