# SPDX-License-Identifier: Apache-2.0

"""Asks an agent what users use: each knows it of all nodes."""

from collections.abc import Callable
import math
from typing import Any

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.shares import measured as measured_module

LOG = logging.getLogger(__name__)

UNKNOWN = 'what is allocated is charged: no agent says what is used: %s'
KNOWN_AGAIN = 'what agents measured is charged again'

Ask = Callable[[], Any]
"""Asks any agent for what is used; raises FairnessError."""


class Measuring:
    """Use that agents measured.

    :param ask: asks one of them.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._is_known = True

    def measured(self) -> measured_module.Measured | None:
        """Use of this moment; ``None`` if nobody says, or says nonsense."""
        try:
            found = _believed(self._ask())
        except exception.FairnessError as error:
            if self._is_known:
                LOG.warning(UNKNOWN, error)
            self._is_known = False
            return None
        if not self._is_known:
            LOG.info(KNOWN_AGAIN)
        self._is_known = True
        return found


def _believed(told: Any) -> measured_module.Measured:
    """The answer of an agent.

    :raises BadArgument: if it is none.
    """
    users = told.get('users') if isinstance(told, dict) else None
    if not isinstance(users, dict) or told.get('round') is None:
        raise exception.BadArgument('no round of the agent has ended yet')
    parts: dict[str, dict[str, float]] = {}
    for owner, user in users.items():
        each = user.get('usage_parts') if isinstance(user, dict) else None
        if not isinstance(each, dict):
            raise exception.BadArgument(f'use of {owner!r:.50} is no object')
        parts[owner] = {
            resource: float(part)
            for resource, part in each.items()
            if isinstance(part, int | float) and 0 <= part < math.inf
        }
    return measured_module.Measured(told.get('entity') == 'project', parts)
