# SPDX-License-Identifier: Apache-2.0

"""Guests of this node are told by their agents that their servers leave.

Metadata tell the same, and the service alone knows both. It is asked beside
the rounds, and a guest that does not answer keeps no round waiting.
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

AGAIN_S = 10.0
"""After which the service is asked again: much less than any notice."""

LONGEST_S = 10.0
"""For which guests may keep a look waiting; others' turn is in the next."""

_TIMEOUT_S = 10.0
_ALL = 'all guests'
_WHAT = signatures_module.NOTICES

Notice = Mapping[str, str]
"""Metadata of a server that say that it leaves or is at risk."""

_Words = Annotated[str, msgspec.Meta(max_length=4096)]


@dataclasses.dataclass(frozen=True, slots=True)
class _Told:
    notices: dict[limits.Name, dict[limits.Name, _Words]]


class Notices:
    """Asks the cluster service who leaves, and has guests told.

    :param ask: asks it about servers; may block, and raise anything.
    :param write: writes a text into a guest, by the UUID of its server;
        may block, and raise :class:`exception.GuestNotWritten`.
    :param file: what guests were told last.
    :param again_s: after which it is asked again, in seconds.
    :param signatures: that judge who said it; ``None`` where peers have no
        keys.
    :param clock: monotonic, seconds.
    """

    def __init__(
        self,
        ask: Callable[[Sequence[str]], object],
        write: Callable[[str, str], None],
        file: state_file.StateFile,
        again_s: float = AGAIN_S,
        signatures: signatures_module.Signatures | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._write = write
        self._file = file
        self._signatures = signatures
        self._clock = clock
        self._here: Mapping[str, str] = {}
        self._told: Mapping[str, Notice] = file.kept(
            _read, {}, 'guests get the notices of their servers again'
        )
        self._silent: dict[str, Notice] = {}
        self._counts = {'sent': 0, 'failed': 0}
        self._lookup = lookup.Lookup[object](_WHAT, self._look, again_s)

    def start(self) -> None:
        """Begin to ask; returns at once."""
        self._lookup.start()

    def stop(self) -> None:
        """End it, in bounded time."""
        self._lookup.stop()

    def tell(self, here: Iterable[instance.Incarnation]) -> None:
        """Have guests told what is new; never blocks."""
        # One that began anew knows nothing of what it was told before.
        self._here = {vm.key: vm.instance.uuid for vm in here}
        self._lookup.known([_ALL])

    def statistics(self) -> Mapping[str, int]:
        """``sent`` and ``failed``: times that guests were told or not."""
        return dict(self._counts)

    def _look(self, _: str) -> None:
        """Ask, and tell who does not know it yet."""
        self._file.retry()
        here = self._here
        wanted = self._answer(sorted(set(here.values()))) if here else {}
        told = {key: each for key, each in self._told.items() if key in here}
        due = {
            key: notice
            for key, uuid in here.items()
            if (notice := wanted.get(uuid, {})) != told.get(key, {})
        }
        self._silent = {
            key: each for key, each in self._silent.items() if key in due
        }
        ends = self._clock() + LONGEST_S
        # Who has not been silent yet, then who has, in turn.
        new = [key for key in due if key not in self._silent]
        for key in (*new, *self._silent):
            if self._clock() >= ends:
                break
            if self._is_told(key, here[key], due[key]):
                told[key] = due[key]
        told = {key: notice for key, notice in told.items() if notice}
        if told != self._told:
            self._told = told
            self._file.write(json.dumps(told))

    def _is_told(self, key: str, uuid: str, notice: Notice) -> bool:
        text = json.dumps(notice) + '\n'
        before = self._silent.pop(key, None)
        try:
            self._write(uuid, text)
        except exception.GuestNotWritten as error:
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

    def _answer(self, here: Sequence[str]) -> Mapping[str, Notice]:
        """Ask, and believe nothing that was not asked for.

        :raises ReportRefused: if it is no answer.
        """
        told = self._ask(here)
        notices = limits.converted(told, _Told, _WHAT).notices
        peering_module.check_answer(
            told, _WHAT, here, notices, self._signatures
        )
        return notices


def _read(told: object) -> Mapping[str, Notice]:
    return limits.converted({'notices': told}, _Told, _WHAT).notices


def connect(
    conf: cfg.ConfigOpts,
    peering: peering_module.Peering,
    state_path: pathlib.Path,
) -> Notices | None:
    """The notices of ``[fairness] guest_notice_path``; ``None`` if unset.

    :raises ConfigurationError: if there is no cluster service to ask, or it is
        no path.
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
