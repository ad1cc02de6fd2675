# SPDX-License-Identifier: Apache-2.0

"""Sends eviction notices to the guest agents of the VMs on this node.

The metadata of a server contain the same notice. Only the cluster service
knows the notices. The agent queries it between rounds, so that a slow guest
never delays a round.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import json
import logging
import pathlib
import time
from typing import Annotated

import msgspec
from oslo_config import cfg

from nova_fairness import exception
from nova_fairness.agent.comms import peering as peering_module
from nova_fairness.apply import guest_agent
from nova_fairness.exchange import limits
from nova_fairness.model import instance
from nova_fairness.runtime import lookup
from nova_fairness.runtime import signatures as signatures_module
from nova_fairness.runtime import state_file

LOG = logging.getLogger(__name__)

OPTION = '[fairness] guest_notice_path'

QUERY_INTERVAL_S = 10.0
"""Seconds between two queries to the cluster service; a notice period is much
longer."""

DELIVERY_LIMIT_S = 10.0
"""Longest time for writing notices in one update, in seconds. The next update
continues with the remaining guests."""

_TIMEOUT_S = 10.0
_ALL = 'all guests'
_WHAT = signatures_module.NOTICES

Notice = Mapping[str, str]
"""Metadata of a server that announce its eviction or the risk of it."""

_MetadataValue = Annotated[str, msgspec.Meta(max_length=4096)]


@dataclasses.dataclass(frozen=True, slots=True)
class _NoticesAnswer:
    notices: dict[limits.Name, dict[limits.Name, _MetadataValue]]


class Notices:
    """Queries the eviction notices and delivers them to the guests.

    :param query: asks the cluster service for the notices of servers; may
        block, and raise anything.
    :param write: writes a text into a guest, by the UUID of its server; may
        block, and raise :class:`exception.GuestFileNotWritten`.
    :param file: stores the last notice that each guest received.
    :param query_interval_s: seconds between two queries.
    :param signatures: checks who signed an answer; ``None`` where peers have
        no keys.
    :param clock: monotonic, seconds.
    """

    def __init__(
        self,
        query: Callable[[Sequence[str]], object],
        write: Callable[[str, str], None],
        file: state_file.StateFile,
        query_interval_s: float = QUERY_INTERVAL_S,
        signatures: signatures_module.Signatures | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = query
        self._write = write
        self._file = file
        self._signatures = signatures
        self._clock = clock
        self._here: Mapping[str, str] = {}
        self._told: Mapping[str, Notice] = file.kept(
            _parse_saved, {}, 'guests get the notices of their servers again'
        )
        self._silent: dict[str, Notice] = {}
        self._counts = {'sent': 0, 'failed': 0}
        self._lookup = lookup.Lookup[object](
            _WHAT, self._update, query_interval_s
        )

    def start(self) -> None:
        """Start the queries on another thread; returns at once."""
        self._lookup.start()

    def stop(self) -> None:
        """Stop the queries, in bounded time."""
        self._lookup.stop()

    def set_vms(self, vms: Iterable[instance.Incarnation]) -> None:
        """Set the VMs of this node whose guests get notices; never blocks."""
        # A restarted VM has a new key, so its guest gets the notice again.
        self._here = {vm.key: vm.instance.uuid for vm in vms}
        self._lookup.known([_ALL])

    def statistics(self) -> Mapping[str, int]:
        """Return the number of notices ``sent`` to guests and ``failed``."""
        return dict(self._counts)

    def _update(self, _: str) -> None:
        """Query the notices, and deliver those that guests do not have yet."""
        self._file.retry()
        here = self._here
        wanted = (
            self._query_notices(sorted(set(here.values()))) if here else {}
        )
        told = {key: each for key, each in self._told.items() if key in here}
        due = {
            key: notice
            for key, uuid in here.items()
            if (notice := wanted.get(uuid, {})) != told.get(key, {})
        }
        self._silent = {
            key: each for key, each in self._silent.items() if key in due
        }
        ends = self._clock() + DELIVERY_LIMIT_S
        # First guests that never failed to answer, then the others in turn.
        new = [key for key in due if key not in self._silent]
        for key in (*new, *self._silent):
            if self._clock() >= ends:
                break
            if self._deliver(key, here[key], due[key]):
                told[key] = due[key]
        told = {key: notice for key, notice in told.items() if notice}
        if told != self._told:
            self._told = told
            self._file.write(json.dumps(told))

    def _deliver(self, key: str, uuid: str, notice: Notice) -> bool:
        """Write a notice into a guest; return whether that succeeded."""
        text = json.dumps(notice) + '\n'
        before = self._silent.pop(key, None)
        try:
            self._write(uuid, text)
        except exception.GuestFileNotWritten as error:
            self._silent[key] = notice
            if before != notice:
                self._counts['failed'] += 1
                # No fault: not every image has an agent.
                LOG.info(
                    'the guest of server %s is not told by its agent, only by'
                    ' its metadata: %s',
                    uuid,
                    error,
                )
            return False
        self._counts['sent'] += 1
        LOG.info(
            'server %s: its guest got %s', uuid, notice or 'an empty notice'
        )
        return True

    def _query_notices(self, uuids: Sequence[str]) -> Mapping[str, Notice]:
        """Return the notices of servers, after a check of the answer.

        :raises ReportRefused: if the answer is malformed or about other
            servers.
        """
        told = self._ask(uuids)
        notices = limits.convert(told, _NoticesAnswer, _WHAT).notices
        peering_module.check_answer(
            told, _WHAT, uuids, notices, self._signatures
        )
        return notices


def _parse_saved(content: object) -> Mapping[str, Notice]:
    return limits.convert({'notices': content}, _NoticesAnswer, _WHAT).notices


def connect(
    conf: cfg.ConfigOpts,
    peering: peering_module.Peering,
    state_path: pathlib.Path,
) -> Notices | None:
    """Create the sender of notices, or return ``None`` if the path is unset.

    The option is ``[fairness] guest_notice_path``.

    :raises ConfigurationError: if there is no cluster service to query, or the
        path has unprintable characters.
    """
    path = conf.fairness.guest_notice_path
    if not path:
        return None
    if not path.isprintable():
        raise exception.ConfigurationError(
            f'{OPTION} = {path!r}: expected printable characters'
        )
    client = peering.cluster(_TIMEOUT_S)
    guests = guest_agent.GuestAgents(conf.fairness.connection_uri)
    return Notices(
        lambda servers: client.call('get_notices', servers=list(servers)),
        lambda uuid, text: guests.write(uuid, path, text),
        state_file.StateFile(state_path / 'notices.json'),
        signatures=signatures_module.of(conf, conf.fairness_exchange.domain),
    )
