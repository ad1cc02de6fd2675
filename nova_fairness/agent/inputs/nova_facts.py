# SPDX-License-Identifier: Apache-2.0

"""Facts of VMs and their owners that an agent gets from its cloud."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Protocol

from nova_fairness.model import instance
from nova_fairness.runtime import lookup


class CloudFacts(Protocol):
    """Provides facts of VMs and owners that the node cannot read itself.

    Only ``start`` and ``stop`` may block, for a bounded time.
    """

    def start(self, reread_vm: Callable[[str], None]) -> None:
        """Start the queries, and register the node with Nova.

        :param reread_vm: called with the UUID of a domain that has new facts.
        """

    def stop(self) -> None:
        """Stop the queries, in bounded time."""

    def withdraw(self) -> bool:
        """Delete this node's record in Nova; return whether there was one."""

    def describe(self, uuid: str) -> instance.Description | None:
        """Return the description of a VM whose domain names no owner.

        :returns: ``None`` if it is not known yet.
        """

    def weights(self, owners: Iterable[str]) -> Mapping[str, float]:
        """Return the weights of users or projects that are known already.

        :returns: > 0 by id; owners without an entry have the configured
            weight.
        """


class NoCloud:
    """A node without a cloud: it has no additional facts."""

    def start(self, reread_vm: Callable[[str], None]) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""

    def withdraw(self) -> bool:
        """Do nothing: Nova has no record of this node."""
        return False

    def describe(self, uuid: str) -> instance.Description | None:
        """Return no description."""
        return None

    def weights(self, owners: Iterable[str]) -> Mapping[str, float]:
        """Return no weights."""
        return {}


class CloudWrapper:
    """Base of clouds that add facts to those of another cloud.

    :param base: the cloud whose facts are extended.
    """

    def __init__(self, base: CloudFacts) -> None:
        self._base = base

    def start(self, reread_vm: Callable[[str], None]) -> None:
        """Start the queries; returns at once."""
        self._base.start(reread_vm)

    def stop(self) -> None:
        """Stop the queries, in bounded time."""
        self._base.stop()

    def withdraw(self) -> bool:
        """Delete this node's record in Nova; return whether there was one."""
        return self._base.withdraw()

    def describe(self, uuid: str) -> instance.Description | None:
        """Return the description of a VM whose domain names no owner."""
        return self._base.describe(uuid)

    def weights(self, owners: Iterable[str]) -> Mapping[str, float]:
        """Return the weights of users or projects that are known already."""
        return self._base.weights(owners)


class QueryingCloud(CloudWrapper):
    """A cloud wrapper that queries its additional facts between rounds.

    :param base: the cloud whose facts are extended.
    :param query: queries the additional facts.
    """

    def __init__(self, base: CloudFacts, query: lookup.Lookup[str]) -> None:
        super().__init__(base)
        self._lookup = query

    def start(self, reread_vm: Callable[[str], None]) -> None:
        """Start the queries; returns at once."""
        super().start(reread_vm)
        self._lookup.start()

    def stop(self) -> None:
        """Stop the queries, in bounded time."""
        self._lookup.stop()
        super().stop()
