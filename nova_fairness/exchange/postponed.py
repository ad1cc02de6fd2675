# SPDX-License-Identifier: Apache-2.0

"""Messages whose numbers nobody has looked at yet."""

from collections.abc import Sequence
from typing import NamedTuple

from nova_fairness import exception
from nova_fairness.exchange import codec


class Waiting(NamedTuple):
    """One message.

    :ivar short: what is known of it.
    :ivar arrived_s: when it came, on the monotonic clock of this node.
    """

    short: codec.Short
    arrived_s: float


class Refusal(NamedTuple):
    """Of a message whose numbers were looked at.

    :ivar host: that sent it.
    :ivar error: what was wrong with it.
    """

    host: str
    error: exception.ReportRefused


class Settled(NamedTuple):
    """What became of messages.

    :ivar accepted: number of those that count now.
    :ivar refusals: of the others.
    """

    accepted: int = 0
    refusals: Sequence[Refusal] = ()


NOTHING = Settled()


class Postponed:
    """Keeps one message of a host at most."""

    def __init__(self) -> None:
        self._by_host: dict[str, Waiting] = {}

    def put(self, short: codec.Short, now_s: float) -> bool:
        """Keep a message.

        :returns: False if there is one of its host.
        """
        waiting = Waiting(short, now_s)
        return self._by_host.setdefault(short.host, waiting) is waiting

    def take(self, host: str = '') -> list[Waiting]:
        """What was kept; it is kept no more.

        :param host: whose; empty: everybody's.
        """
        if host:
            found = self._by_host.pop(host, None)
            return [] if found is None else [found]
        taken = list(self._by_host.values())
        self._by_host.clear()
        return taken
