# SPDX-License-Identifier: Apache-2.0

"""Channels that tell owners and guests of victims.

A channel tells before an action on a server (:func:`before_steps`), or after
each step that is stored (:func:`after_steps`). Agents fetch their texts
themselves: :func:`for_agents`. All channels use the same texts.
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
"""Metadata keys that tell a guest when, how and why its server leaves."""

AT_RISK = 'fairness:at_risk'
"""Metadata key of the time since which a server is at risk, UTC."""

KEYS = (AT_RISK, LEAVES_AT, LEAVES_BY, LEAVES_WHY)
"""Metadata keys that channels write."""

_LEAVES = (LEAVES_AT, LEAVES_BY, LEAVES_WHY, nova_module.DONE)

Words = dict[str, str]
"""Texts for a guest, by metadata key."""


class NoticeChannel(abc.ABC):
    """One way to tell owners or guests."""

    @abc.abstractmethod
    def tell(self, leave: eviction.Eviction) -> None:
        """Tell that a server leaves, or the state of its eviction; maybe
        again.

        :raises CloudRefused: if this channel cannot tell it.
        :raises CloudError: if it is to be tried again.
        """

    @abc.abstractmethod
    def warn(self, known: risk.Risk) -> None:
        """Tell that a server is at risk, or no longer is; maybe again.

        :raises CloudError: see :meth:`tell`.
        """

    def untell(self, server: str) -> None:
        """Remove the text of :meth:`tell` if it can still be read.

        :param server: its UUID.
        :raises CloudError: see :meth:`tell`.
        """

    def unwarn(self, server: str) -> None:
        """Remove the text of :meth:`warn` if it can still be read.

        :param server: its UUID.
        :raises CloudError: see :meth:`tell`.
        """


class ServerMetadata(NoticeChannel):
    """Metadata in Nova, which guests read from its metadata service.

    :param nova: writes the metadata.
    """

    def __init__(self, nova: nova_module.Nova) -> None:
        self._nova = nova

    def tell(self, leave: eviction.Eviction) -> None:
        """Write when, how and why a server leaves."""
        # A "done" from before the notice is no answer to the notice. A server
        # that retires said "done" before, and keeps it.
        if leave.cause is not eviction.EvictionCause.RETIRES:
            self._nova.unmark(leave.server, nova_module.DONE)
        self._nova.mark(leave.server, _eviction_texts(leave))

    def untell(self, server: str) -> None:
        """Remove the notice, and the answer of the server."""
        for key in _LEAVES:
            self._nova.unmark(server, key)

    def warn(self, known: risk.Risk) -> None:
        """Write since when a server is at risk, or remove that."""
        if known.is_at_risk:
            self._nova.mark(known.server, _risk_texts(known))
        else:
            self.unwarn(known.server)

    def unwarn(self, server: str) -> None:
        """Remove the warning."""
        self._nova.unmark(server, AT_RISK)


class Notifications(NoticeChannel):
    """Notifications on the bus; each is an event, and none is withdrawn.

    :param post: takes notifications; it never waits.
    :param host: name of the host that sends them.
    :param audience: readers of the notifications.
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
        """Post the state of an eviction."""
        said = queue_observe.eviction_notice(leave, self._host, self._audience)
        self._post([said])

    def warn(self, known: risk.Risk) -> None:
        """Post that a server is at risk, or no longer is."""
        said = queue_observe.risk_notice(known, self._host, self._audience)
        self._post([said])


class NoticeChannels(NoticeChannel):
    """Several channels, used one after the other.

    :param channels: in this order.
    """

    def __init__(self, channels: Sequence[NoticeChannel]) -> None:
        self._channels = channels

    def tell(self, leave: eviction.Eviction) -> None:
        """Tell by each channel."""
        for each in self._channels:
            each.tell(leave)

    def warn(self, known: risk.Risk) -> None:
        """Warn by each channel."""
        for each in self._channels:
            each.warn(known)

    def untell(self, server: str) -> None:
        """Remove the notice from each channel."""
        for each in self._channels:
            each.untell(server)

    def unwarn(self, server: str) -> None:
        """Remove the warning from each channel."""
        for each in self._channels:
            each.unwarn(server)


def before_steps(nova: nova_module.Nova) -> NoticeChannel:
    """Channels that tell before a notice begins; they are retried until they
    do.

    :param nova: of the cloud.
    """
    return NoticeChannels([ServerMetadata(nova)])


def after_steps(
    post: Callable[[Iterable[notices.Notice]], None],
    host: str,
    audience: reason.Audience,
) -> NoticeChannel:
    """Channels that tell of each step after it is stored; they never wait.

    :param post: takes notifications.
    :param host: name of the host that sends them.
    :param audience: readers of the notifications.
    """
    return NoticeChannels([Notifications(post, host, audience)])


def for_agents(
    leaves: Iterable[eviction.Eviction], risks: Iterable[risk.Risk]
) -> dict[str, Words]:
    """Texts for all guests that agents write into them.

    :param leaves: evictions of servers that have not left.
    :param risks: of servers that are at risk.
    :returns: texts by UUID of the server.
    """
    found = {each.server: _risk_texts(each) for each in risks}
    is_told = eviction.GOING - {eviction.EvictionState.CHOSEN}
    for leave in leaves:
        if leave.state in is_told:
            found[leave.server] = _eviction_texts(leave)
    return found


def _eviction_texts(leave: eviction.Eviction) -> Words:
    return {
        LEAVES_AT: moments.stamp(leave.at),
        LEAVES_BY: leave.actions[0].value,
        # Guests read it, and readers of channels outside this service.
        LEAVES_WHY: reason.told(
            leave.why, reason.Audience.OWNER, leave.project
        ).sentence,
    }


def _risk_texts(known: risk.Risk) -> Words:
    return {AT_RISK: moments.stamp(known.since)}
