# SPDX-License-Identifier: Apache-2.0

"""Free amounts of hosts while a planner adds and removes servers.

Arrays have a row per class of Placement, and a column per host.
"""

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.planners import hosts as hosts_module


def is_enough(
    free: cluster.Amounts, amounts: cluster.Amounts
) -> hosts_module.Marks:
    """Whether the free amounts are sufficient in every class that servers
    need.

    This is the rule of Placement: a host that is short of a class for which a
    server does not ask has room for the server.

    :param free: (c, ...) free amounts.
    :param amounts: (c, ...) amounts of servers, >= 0; the shape can be
        broadcast to that of ``free``.
    :returns: the shape of ``free`` without its first axis.
    """
    return np.asarray(((amounts <= free) | (amounts <= 0)).all(axis=0))


class FreeAmounts:
    """Free amounts of hosts.

    :param free: (c, p) free amounts at first; the array is copied.

    :ivar free: (c, p) free amounts now, negative where more is used than a
        host has.
    """

    def __init__(self, free: cluster.Amounts) -> None:
        self.free = free.copy()

    def take(self, row: int, amounts: cluster.Amounts) -> None:
        """Subtract the amounts of a server on a host.

        :param row: row of the host.
        :param amounts: (c,) amounts of the server.
        """
        self.free[:, row] -= amounts

    def give_back(self, row: int, amounts: cluster.Amounts) -> None:
        """Add back the amounts of a server that leaves a host.

        :param row: row of the host.
        :param amounts: (c,) amounts of the server.
        """
        self.free[:, row] += amounts

    def has(self, row: int, amounts: cluster.Amounts) -> bool:
        """Whether a host has room for a server; see :func:`is_enough`.

        :param row: row of the host.
        :param amounts: (c,) amounts of the server.
        """
        return bool(is_enough(self.free[:, row], amounts))

    def having(
        self, rows: hosts_module.Rows, amounts: cluster.Amounts
    ) -> hosts_module.Marks:
        """Return which hosts have room for a server, (m,); see
        :func:`is_enough`.

        :param rows: (m,) rows of the hosts.
        :param amounts: (c, 1) of the server, or (c, m) of one for each host.
        """
        return is_enough(self.free[:, rows], amounts)
