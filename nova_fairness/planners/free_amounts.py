# SPDX-License-Identifier: Apache-2.0

"""Amounts that hosts have left while servers come and go in thought.

Arrays have a row per class of Placement, and a column per host.
"""

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.planners import hosts as hosts_module


def is_enough(
    free: cluster.Amounts, amounts: cluster.Amounts
) -> hosts_module.Marks:
    """Whether room is enough in every class that is asked for.

    As Placement judges: a host that is short of another class has room.

    :param free: (c, ...) what is left.
    :param amounts: (c, ...) of servers, >= 0, of a shape that goes with it.
    :returns: the same shape without the classes.
    """
    return np.asarray(((amounts <= free) | (amounts <= 0)).all(axis=0))


class FreeAmounts:
    """Amounts that hosts have left.

    :param free: (c, p) at first; it is copied.

    :ivar free: (c, p), negative where more is used than a host has.
    """

    def __init__(self, free: cluster.Amounts) -> None:
        self.free = free.copy()

    def take(self, row: int, amounts: cluster.Amounts) -> None:
        """Count a server on a host.

        :param row: of the host.
        :param amounts: (c,) of the server.
        """
        self.free[:, row] -= amounts

    def give_back(self, row: int, amounts: cluster.Amounts) -> None:
        """A server leaves a host.

        :param row: of the host.
        :param amounts: (c,) of the server.
        """
        self.free[:, row] += amounts

    def has(self, row: int, amounts: cluster.Amounts) -> bool:
        """Whether a host has room for a server; see :func:`is_enough`.

        :param row: of the host.
        :param amounts: (c,) of the server.
        """
        return bool(is_enough(self.free[:, row], amounts))

    def having(
        self, rows: hosts_module.Rows, amounts: cluster.Amounts
    ) -> hosts_module.Marks:
        """(m,) which hosts have room for a server; see :func:`is_enough`.

        :param rows: (m,) of the hosts.
        :param amounts: (c, 1) of the server, or (c, m) of one for each host.
        """
        return is_enough(self.free[:, rows], amounts)
