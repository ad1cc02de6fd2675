# SPDX-License-Identifier: Apache-2.0

"""Channels that send eviction notices and warnings to owners and guests.

A channel sends before an action on a server (:func:`channels_before_steps`),
or after each step that is stored (:func:`channels_after_steps`). Agents fetch
their texts themselves: :func:`texts_for_agents`. All channels use the same
texts.
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
"""Metadata keys that show a guest when, how and why its server will be
evicted.
"""

AT_RISK = 'fairness:at_risk'
"""Metadata key of the time since which a server is at risk, UTC."""

KEYS = (AT_RISK, LEAVES_AT, LEAVES_BY, LEAVES_WHY)
"""Metadata keys that channels write."""

_LEAVES = (LEAVES_AT, LEAVES_BY, LEAVES_WHY, nova_module.DONE)

Words = dict[str, str]
"""Texts for a guest, by metadata key."""


class NoticeChannel(abc.ABC):
    """One channel to owners or guests of servers."""

    @abc.abstractmethod
    def send_notice(self, leave: eviction.Eviction) -> None:
        """Send the notice of an eviction, or its present state; repeated calls
        are allowed.

        :raises CloudRefused: if this channel cannot send the notice.
        :raises CloudError: if the caller must try again later.
        """

    @abc.abstractmethod
    def send_warning(self, warning: risk.EvictionRisk) -> None:
        """Send that a server is at risk, or no longer is; repeated calls are
        allowed.

        :raises CloudError: see :meth:`send_notice`.
        """

    def withdraw_notice(self, server: str) -> None:
        """Delete the text of :meth:`send_notice` if it can still be read.

        :param server: UUID of the server.
        :raises CloudError: see :meth:`send_notice`.
        """

    def withdraw_warning(self, server: str) -> None:
        """Delete the text of :meth:`send_warning` if it can still be read.

        :param server: UUID of the server.
        :raises CloudError: see :meth:`send_notice`.
        """


class ServerMetadata(NoticeChannel):
    """Channel that writes metadata of servers in Nova, which guests read from
    Nova's metadata service.

    :param nova: writes the metadata.
    """

    def __init__(self, nova: nova_module.Nova) -> None:
        self._nova = nova

    def send_notice(self, leave: eviction.Eviction) -> None:
        """Write when, how and why a server will be evicted."""
        # A "done" from before the notice is no answer to the notice. A server
        # that retires said "done" before, and keeps it.
        if leave.cause is not eviction.EvictionCause.RETIRES:
            self._nova.delete_metadata(leave.server, nova_module.DONE)
        self._nova.write_metadata(leave.server, _eviction_texts(leave))

    def withdraw_notice(self, server: str) -> None:
        """Delete the eviction notice of a server, and the server's answer to
        it.
        """
        for key in _LEAVES:
            self._nova.delete_metadata(server, key)

    def send_warning(self, warning: risk.EvictionRisk) -> None:
        """Write since when a server is at risk; delete the text if it no
        longer is.
        """
        if warning.is_at_risk:
            self._nova.write_metadata(warning.server, _risk_texts(warning))
        else:
            self.withdraw_warning(warning.server)

    def withdraw_warning(self, server: str) -> None:
        """Delete the warning of a server."""
        self._nova.delete_metadata(server, AT_RISK)


class Notifications(NoticeChannel):
    """Channel that sends notifications on the message bus; a notification
    cannot be withdrawn.

    :param post_notifications: accepts notifications; it never blocks.
    :param host: name of the host that sends them.
    :param audience: readers of the notifications.
    """

    def __init__(
        self,
        post_notifications: Callable[[Iterable[notices.Notice]], None],
        host: str,
        audience: reason.Audience,
    ) -> None:
        self._post = post_notifications
        self._host = host
        self._audience = audience

    def send_notice(self, leave: eviction.Eviction) -> None:
        """Send a notification with the state of an eviction."""
        said = queue_observe.eviction_notice(leave, self._host, self._audience)
        self._post([said])

    def send_warning(self, warning: risk.EvictionRisk) -> None:
        """Send a notification that a server is at risk, or no longer is."""
        said = queue_observe.risk_notice(warning, self._host, self._audience)
        self._post([said])


class NoticeChannels(NoticeChannel):
    """Several channels, used one after the other.

    :param channels: channels in their order of use.
    """

    def __init__(self, channels: Sequence[NoticeChannel]) -> None:
        self._channels = channels

    def send_notice(self, leave: eviction.Eviction) -> None:
        """Send the notice by each channel."""
        for each in self._channels:
            each.send_notice(leave)

    def send_warning(self, warning: risk.EvictionRisk) -> None:
        """Send the warning by each channel."""
        for each in self._channels:
            each.send_warning(warning)

    def withdraw_notice(self, server: str) -> None:
        """Withdraw the notice from each channel."""
        for each in self._channels:
            each.withdraw_notice(server)

    def withdraw_warning(self, server: str) -> None:
        """Withdraw the warning from each channel."""
        for each in self._channels:
            each.withdraw_warning(server)


def channels_before_steps(nova: nova_module.Nova) -> NoticeChannel:
    """Return the channels that send before a step is stored; failed sends are
    repeated.

    :param nova: client of Nova.
    """
    return NoticeChannels([ServerMetadata(nova)])


def channels_after_steps(
    post_notifications: Callable[[Iterable[notices.Notice]], None],
    host: str,
    audience: reason.Audience,
) -> NoticeChannel:
    """Return the channels that send each step after it is stored; they never
    block.

    :param post_notifications: accepts notifications.
    :param host: name of the host that sends them.
    :param audience: readers of the notifications.
    """
    return NoticeChannels([Notifications(post_notifications, host, audience)])


def texts_for_agents(
    leaves: Iterable[eviction.Eviction], risks: Iterable[risk.EvictionRisk]
) -> dict[str, Words]:
    """Return the texts that agents write into guests, by UUID of the server.

    :param leaves: evictions of servers that have not left their hosts.
    :param risks: warnings of servers that are at risk.
    """
    found = {each.server: _risk_texts(each) for each in risks}
    is_told = eviction.GOING - {eviction.EvictionState.CHOSEN}
    for leave in leaves:
        if leave.state in is_told:
            found[leave.server] = _eviction_texts(leave)
    return found


def _eviction_texts(leave: eviction.Eviction) -> Words:
    """Return the texts of an eviction notice, by metadata key."""
    return {
        LEAVES_AT: moments.stamp(leave.at),
        LEAVES_BY: leave.actions[0].value,
        # Guests read it, and readers of channels outside this service.
        LEAVES_WHY: reason.readable_reason(
            leave.why, reason.Audience.OWNER, leave.project
        ).sentence,
    }


def _risk_texts(warning: risk.EvictionRisk) -> Words:
    """Return the text of a warning, by metadata key."""
    return {AT_RISK: moments.stamp(warning.since)}
