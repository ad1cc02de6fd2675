# SPDX-License-Identifier: Apache-2.0

"""All channels by which owners and guests of victims are told.

A channel tells before something is done to a server (:func:`before_steps`) or
of each step that is stored (:func:`after_steps`). Agents ask on their own:
:func:`for_agents`. All say the same words.
"""

import abc
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence

from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.model import eviction
from nova_fairness.model import moments
from nova_fairness.model import reason
from nova_fairness.model import risk
from nova_fairness.observe import notices
from nova_fairness.observe import queue as queue_observe

LEAVES_AT = 'fairness:leaves_at'
LEAVES_BY = 'fairness:leaves_by'
LEAVES_WHY = 'fairness:leaves_why'
"""Keys by which a guest knows that its server leaves."""

AT_RISK = 'fairness:at_risk'
"""Key by which it knows since when its server is at risk, UTC."""

KEYS = (AT_RISK, LEAVES_AT, LEAVES_BY, LEAVES_WHY)
"""Metadata that channels write."""

_LEAVES = (LEAVES_AT, LEAVES_BY, LEAVES_WHY, nova_module.DONE)

Words = dict[str, str]
"""Words for a guest, by key."""


class NoticeChannel(abc.ABC):
    """One way by which owners or guests are told."""

    @abc.abstractmethod
    def tell(self, leave: eviction.Eviction) -> None:
        """Tell that a server leaves, or how far it has; maybe again.

        :raises CloudRefused: if it cannot be told by this channel.
        :raises CloudError: if it is to be tried again.
        """

    @abc.abstractmethod
    def warn(self, known: risk.Risk) -> None:
        """Tell that a server is at risk, or no longer is; maybe again.

        :raises CloudError: see :meth:`tell`.
        """

    def untell(self, server: str) -> None:
        """Take back what :meth:`tell` told, where it stays to be read.

        :param server: its UUID.
        :raises CloudError: see :meth:`tell`.
        """

    def unwarn(self, server: str) -> None:
        """Take back what :meth:`warn` told, where it stays to be read.

        :param server: its UUID.
        :raises CloudError: see :meth:`tell`.
        """


class ServerMetadata(NoticeChannel):
    """Metadata in Nova, which guests read from its metadata service.

    :param nova: writes them.
    """

    def __init__(self, nova: nova_module.Nova) -> None:
        self._nova = nova

    def tell(self, leave: eviction.Eviction) -> None:
        """Write when, how and why a server leaves."""
        # What was said before the notice is no answer to it, unless it is
        # why it leaves.
        if leave.cause is not eviction.EvictionCause.RETIRES:
            self._nova.unmark(leave.server, nova_module.DONE)
        self._nova.mark(leave.server, _of_leave(leave))

    def untell(self, server: str) -> None:
        """Remove that, and the answer of the server."""
        for key in _LEAVES:
            self._nova.unmark(server, key)

    def warn(self, known: risk.Risk) -> None:
        """Write since when a server is at risk, or remove it."""
        if known.is_at_risk:
            self._nova.mark(known.server, _of_risk(known))
        else:
            self.unwarn(known.server)

    def unwarn(self, server: str) -> None:
        """Remove it."""
        self._nova.unmark(server, AT_RISK)


class Notifications(NoticeChannel):
    """Notifications on the bus; each is an event, and none is taken back.

    :param post: takes what is told; it never waits.
    :param host: that tells it.
    :param audience: of those who read them.
    """

    def __init__(
        self,
        post: Callable[[Iterable[notices.Notice]], None],
        host: str,
        audience: reason.Audience,
    ) -> None:
        self._post = post
        self._host = host
        self._audience = audience

    def tell(self, leave: eviction.Eviction) -> None:
        """Post the state of a server on its way out."""
        said = queue_observe.leave_notice(leave, self._host, self._audience)
        self._post([said])

    def warn(self, known: risk.Risk) -> None:
        """Post that a server is at risk, or no longer."""
        said = queue_observe.risk_notice(known, self._host, self._audience)
        self._post([said])


class NoticeChannels(NoticeChannel):
    """Several channels, one after the other.

    :param channels: in this order.
    """

    def __init__(self, channels: Sequence[NoticeChannel]) -> None:
        self._channels = channels

    def tell(self, leave: eviction.Eviction) -> None:
        """Tell by each."""
        for each in self._channels:
            each.tell(leave)

    def warn(self, known: risk.Risk) -> None:
        """Warn by each."""
        for each in self._channels:
            each.warn(known)

    def untell(self, server: str) -> None:
        """Take back by each."""
        for each in self._channels:
            each.untell(server)

    def unwarn(self, server: str) -> None:
        """Take back by each."""
        for each in self._channels:
            each.unwarn(server)


def before_steps(nova: nova_module.Nova) -> NoticeChannel:
    """Channels that tell before a notice begins, until they have.

    :param nova: of the cloud.
    """
    return NoticeChannels([ServerMetadata(nova)])


def after_steps(
    post: Callable[[Iterable[notices.Notice]], None],
    host: str,
    audience: reason.Audience,
) -> NoticeChannel:
    """Channels that tell of each step once it is stored; they never wait.

    :param post: takes notifications.
    :param host: that tells it.
    :param audience: of those who read notifications.
    """
    return NoticeChannels([Notifications(post, host, audience)])


def for_agents(
    leaves: Iterable[eviction.Eviction], risks: Iterable[risk.Risk]
) -> dict[str, Words]:
    """All that guests are told now, for agents that write it into them.

    :param leaves: of servers that have not left.
    :param risks: of servers that are at risk.
    :returns: words by UUID of the server.
    """
    found = {each.server: _of_risk(each) for each in risks}
    is_told = eviction.GOING - {eviction.EvictionState.CHOSEN}
    for leave in leaves:
        if leave.state in is_told:
            found[leave.server] = _of_leave(leave)
    return found


def _of_leave(leave: eviction.Eviction) -> Words:
    return {
        LEAVES_AT: moments.stamp(leave.at),
        LEAVES_BY: leave.actions[0].value,
        # Guests and readers of other channels than ours read it.
        LEAVES_WHY: reason.told(
            leave.why, reason.Audience.OWNER, leave.project
        ).sentence,
    }


def _of_risk(known: risk.Risk) -> Words:
    return {AT_RISK: moments.stamp(known.since)}
