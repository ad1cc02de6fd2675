# SPDX-License-Identifier: Apache-2.0

"""The interface of a fairness metric.

A metric computes in two stages how heavy a VM is, and how heavy its user is.
*Heaviness* is a scalar in norm units; higher is heavier, and a user's whole
quota is 1.
"""

import abc
from collections.abc import Set
import dataclasses
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from nova_fairness.model import pairing
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

Heaviness = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class Demands:
    """Input of the instance stage: the VMs of one or more nodes.

    :ivar usage: (n, r) finite, >= 0: use of each VM in the interval.
    :ivar endowment: (n, r) finite, >= 0: part of its node.
    :ivar supply: (r,) of all known nodes in the same interval, with overcommit
        where configured; 0 where no node has the resource.
    :ivar node: (n,) index of the VM's node; unused endowment earns credit
        within a node.
    :ivar user_count: number of users of the cloud, >= 1.
    :ivar rates: (n,) > 0: spending for a unit of each VM's use; ``None`` means
        the same for all.
    """

    usage: resources.Vector
    endowment: resources.Vector
    supply: resources.Vector
    node: usage_model.Indices
    user_count: int
    rates: usage_model.Scalars | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Totals:
    """Input of the user stage: sums over all nodes, one row per user.

    :ivar instance_heaviness: (u,) sum over the user's VMs.
    :ivar usage: (u, r) sum over the user's VMs.
    :ivar endowment: (u, r) sum over the user's VMs.
    :ivar quota: (u, r) part of the supply that each user is entitled to.
    :ivar supply: (r,) as in :class:`Demands`.
    """

    instance_heaviness: Heaviness
    usage: resources.Vector
    endowment: resources.Vector
    quota: resources.Vector
    supply: resources.Vector

    @property
    def user_count(self) -> int:
        """The number of users, >= 1."""
        return len(self.instance_heaviness)


def norm(supply: resources.Vector, user_count: int) -> resources.Vector:
    """Return the factors that make amounts of all resources comparable.

    ``user_count / (R * supply_r)``: with them an equal quota of every resource
    adds up to 1 (reference metric of the paper, section 5.2).

    :param supply: (r,) >= 0.
    :param user_count: >= 1.
    :returns: (r,) finite; 0 where the supply is 0, because a resource that no
        node has makes no user heavy.
    """
    usable = supply > 0
    safe = np.where(usable, supply, 1.0)
    return np.where(usable, user_count / (len(supply) * safe), 0.0)


class Metric(abc.ABC):
    """Base class of all metrics; subclasses are loaded by stevedore.

    Only :meth:`instances` must be implemented. Implementations are pure: they
    return new arrays, never change their arguments and store no state. A
    metric is quarantined if it raises, returns a wrong shape or a number that
    is not finite, or exceeds its deadline. Then the weights stay as they are
    until it works again.
    """

    description: ClassVar[str]
    """One sentence for operators."""

    suits: ClassVar[Set[pairing.PolicyKind]] = pairing.ANY
    """The kinds of policies that the metric is made for; operators get a
    warning for others. Name the kinds with which users are not worse off
    than without an agent. A metric that charges for idle resources does
    not suit policies that make heaviness equal, because these would deduct
    the charge from the use."""

    @abc.abstractmethod
    def instances(self, demands: Demands) -> Heaviness:
        """Return the heaviness of each VM.

        :returns: (n,) finite, in the row order of ``demands``.
        """

    def users(self, totals: Totals) -> Heaviness:
        """Return the heaviness of each user, from the totals over all nodes.

        The default is the sum of the heaviness of the user's VMs, plus their
        endowments, minus the quota (paper, section 4.3).

        :returns: (u,) finite, in the row order of ``totals``.
        """
        factors = norm(totals.supply, totals.user_count)
        surplus = (totals.endowment - totals.quota) @ factors
        return np.asarray(totals.instance_heaviness + surplus)

    def combine(
        self, user_heaviness: Heaviness, instance_heaviness: Heaviness
    ) -> Heaviness:
        """Return the heaviness that decides each VM's weight.

        The default adds the VM's own heaviness to its user's, so that the VM
        that makes a user heavy is affected most (paper, section 5.3.4).

        :param user_heaviness: (n,) of each VM's user.
        :param instance_heaviness: (n,) from :meth:`instances`.
        :returns: (n,) finite.
        """
        return user_heaviness + instance_heaviness
