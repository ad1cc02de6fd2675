# SPDX-License-Identifier: Apache-2.0

"""Facts that an agent gets from its cloud, beside its rounds."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Protocol

from nova_fairness.model import instance
from nova_fairness.runtime import lookup


class CloudFacts(Protocol):
    """Knows more of VMs and their owners than the node itself.

    Only ``start`` and ``stop`` may take time, and that is bounded.
    """

    def start(self, look_again: Callable[[str], None]) -> None:
        """Begin to ask and to be known.

        :param look_again: called with the UUID of a domain with new facts.
        """

    def stop(self) -> None:
        """End all of it."""

    def withdraw(self) -> bool:
        """Withdraw this node from Nova; tells whether Nova knew it."""

    def describe(self, uuid: str) -> instance.Description | None:
        """Describe a VM whose domain names no owner, if it is known by now."""

    def weights(self, owners: Iterable[str]) -> Mapping[str, float]:
        """Weights of users or projects that are known by now.

        :returns: > 0 by id; those not named have what is configured.
        """


class NoCloud:
    """A node on its own."""

    def start(self, look_again: Callable[[str], None]) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""

    def withdraw(self) -> bool:
        """Do nothing: the node was never known."""
        return False

    def describe(self, uuid: str) -> instance.Description | None:
        """Know nothing."""
        return None

    def weights(self, owners: Iterable[str]) -> Mapping[str, float]:
        """Know nothing."""
        return {}


class Around:
    """A cloud that knows something more than another one.

    :param others: the cloud that knows all else.
    """

    def __init__(self, others: CloudFacts) -> None:
        self._others = others

    def start(self, look_again: Callable[[str], None]) -> None:
        """Begin to ask; returns at once."""
        self._others.start(look_again)

    def stop(self) -> None:
        """End all of it, in bounded time."""
        self._others.stop()

    def withdraw(self) -> bool:
        """Withdraw this node from Nova; tells whether Nova knew it."""
        return self._others.withdraw()

    def describe(self, uuid: str) -> instance.Description | None:
        """Describe a VM whose domain names no owner, if it is known by now."""
        return self._others.describe(uuid)

    def weights(self, owners: Iterable[str]) -> Mapping[str, float]:
        """Weights of users or projects that are known by now."""
        return self._others.weights(owners)


class AroundLookup(Around):
    """A cloud that asks for something more beside the rounds.

    :param others: the cloud that knows all else.
    :param asked: asks for it.
    """

    def __init__(self, others: CloudFacts, asked: lookup.Lookup[str]) -> None:
        super().__init__(others)
        self._lookup = asked

    def start(self, look_again: Callable[[str], None]) -> None:
        """Begin to ask; returns at once."""
        super().start(look_again)
        self._lookup.start()

    def stop(self) -> None:
        """End all of it, in bounded time."""
        self._lookup.stop()
        super().stop()
