# SPDX-License-Identifier: Apache-2.0

"""VMs that get only leftover resources: the preemptible ones.

A request decides this when it comes, and only the cluster service knows it:
Nova writes neither metadata of servers nor scheduler hints into domains. The
agent asks the service beside the rounds. The last answer counts until a new
one comes, also after a restart, however long the service is away.
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
"""Asks which of some servers are preemptible."""


class BestEffort(Protocol):
    """Knows which VMs get only leftover resources."""

    def start(self) -> None:
        """Begin to ask; returns at once."""

    def stop(self) -> None:
        """End it, in bounded time."""

    def of(self, uuids: Collection[str]) -> frozenset[str]:
        """Those of some VMs, as far as it is known; never blocks."""


class NoBestEffort:
    """Stands in where the option is off: no VM is best effort."""

    def start(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""

    def of(self, uuids: Collection[str]) -> frozenset[str]:
        """No VMs."""
        return frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class _Told:
    servers: tuple[limits.Name, ...]


class PreemptibleVms:
    """VMs that the cluster service says are preemptible.

    :param ask: asks it; may block, and raise anything.
    :param file: what it said last.
    :param again_s: after which it is asked again, in seconds.
    :param signatures: that judge who said it; ``None`` where peers have no
        keys.
    """

    def __init__(
        self,
        ask: Ask,
        file: state_file.StateFile,
        again_s: float,
        signatures: signatures_module.Signatures | None = None,
    ) -> None:
        self._ask = ask
        self._file = file
        self._signatures = signatures
        self._here: tuple[str, ...] = ()
        self._known: frozenset[str] = file.kept(
            _read,
            frozenset(),
            'VMs are best effort once the cluster service says so',
        )
        self._lookup = lookup.Lookup(_WHAT, self._look, again_s)

    def start(self) -> None:
        """Begin to ask; returns at once."""
        self._lookup.start()

    def stop(self) -> None:
        """End it, in bounded time."""
        self._lookup.stop()

    def of(self, uuids: Collection[str]) -> frozenset[str]:
        """Those of some VMs, as the service said last; never blocks."""
        self._here = tuple(sorted(uuids))
        self._lookup.known([_ALL])
        return self._known.intersection(uuids)

    def _look(self, _: str) -> frozenset[str]:
        """Take over what is new."""
        self._file.retry()
        here = self._here
        known = self._answer(here) if here else frozenset[str]()
        if known != self._known:
            self._file.write(json.dumps({'servers': sorted(known)}))
            self._known = known
        return known

    def _answer(self, here: Sequence[str]) -> frozenset[str]:
        """Ask, and believe nothing that was not asked for.

        :raises ReportRefused: if it is no answer.
        """
        told = self._ask(here)
        servers = limits.converted(told, _Told, _WHAT).servers
        peering_module.check_answer(
            told, _WHAT, here, sorted(servers), self._signatures
        )
        return frozenset(servers)


def _read(told: object) -> frozenset[str]:
    return frozenset(limits.converted(told, _Told, _WHAT).servers)


def connect(
    conf: cfg.ConfigOpts,
    peering: peering_module.Peering,
    state_path: pathlib.Path,
) -> BestEffort:
    """Make the reader that ``[fairness] best_effort`` asks for.

    :raises ConfigurationError: if there is no cluster service to ask.
    """
    if not conf.fairness.best_effort:
        return NoBestEffort()
    client = peering.cluster(_TIMEOUT_S)
    return PreemptibleVms(
        lambda servers: client.call('get_preemptible', servers=list(servers)),
        state_file.StateFile(state_path / 'best_effort.json'),
        # So that what is told in a round counts in the next.
        conf.fairness.interval / 2,
        signatures_module.of(conf, conf.fairness_exchange.domain),
    )
