# SPDX-License-Identifier: Apache-2.0

"""Execution of the parts of a cycle, so that a failing part does not stop
the others.
"""

from collections.abc import Callable
from collections.abc import Sequence
from typing import TypeVar

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster import culprits
from nova_fairness.cluster import pace
from nova_fairness.cluster import quarantine as quarantine_module
from nova_fairness.cluster.store import records
from nova_fairness.model import plans

LOG = logging.getLogger(__name__)

_T = TypeVar('_T')
_K = quarantine_module.InputKind

_TRIES = 100
"""Largest number of runs of a part to find the request that makes it fail."""

_SEARCHES_S = 5.0
"""Largest duration of such a search, seconds."""

_WORKS_S = 10.0
"""Seconds after which one kind of work pauses until the next cycle."""


class CycleParts:
    """Executes the parts of a cycle, and records parts that fail.

    :param quarantine: receives parts and requests that fail.
    :param renew: renews the lease of this process; raises Deposed.
    :param monotonic: returns monotonic time, seconds.
    :param named: returns the name and the UUID of a server, for the log.
    :ivar left_out: whether a part of this cycle failed.
    """

    def __init__(
        self,
        quarantine: quarantine_module.Quarantine,
        renew: Callable[[], None],
        monotonic: Callable[[], float],
        named: Callable[[str], str] = str,
    ) -> None:
        self._quarantine = quarantine
        self._renew = renew
        self._monotonic = monotonic
        self._named = named
        self.left_out = False

    def begin(self) -> None:
        """Start a cycle, in which no part has failed yet."""
        self.left_out = False

    def do(
        self, name: str, do: Callable[..., _T], *arguments: object
    ) -> _T | None:
        """Run a part of a cycle. If it fails, the error is recorded, so that
        other parts still run.

        :returns: result of the part; ``None`` if it failed.
        :raises CloudError: if the cloud does not answer.
        """
        try:
            return do(*arguments)
        except quarantine_module.PASSES:
            raise
        except exception.CloudError:
            # Nova or Placement does not answer: other parts would fail, too.
            raise
        except Exception as error:  # noqa: BLE001 - all others are done
            self.note(name, error)
            return None

    def note(self, name: str, error: Exception) -> None:
        """Record that a part of a cycle failed."""
        self.left_out = True
        self._quarantine.put(_K.PART, name, error)

    def of_all(
        self,
        found: list[records.RequestRecord],
        do: Callable[[Sequence[records.RequestRecord]], _T],
    ) -> _T:
        """Run a part on all requests. If it fails, quarantine the requests
        that make it fail, and run it on the others.
        """
        try:
            return do(found)
        except (*quarantine_module.PASSES, exception.CloudError):
            raise
        except Exception as error:
            if _raises_error(do, ()):
                # No request is to blame.
                raise
            budget = culprits.SearchBudget(
                _TRIES, self._monotonic, self._monotonic() + _SEARCHES_S
            )
            blamed, unsure = culprits.find_culprits(
                found, lambda some: _raises_error(do, some), budget
            )
            for record in blamed:
                self._quarantine.put(_K.REQUEST, record.request.uuid, error)
            known = {each.request.uuid for each in (*blamed, *unsure)}
            return do([e for e in found if e.request.uuid not in known])

    def of_one(
        self,
        record: records.RequestRecord,
        do: Callable[..., None],
        *arguments: object,
    ) -> None:
        """Run a part on one request. If it fails, the error is logged or
        the request is quarantined, so that other requests still run.
        """
        self._renew()
        try:
            do(*arguments)
        except quarantine_module.PASSES:
            raise
        except exception.ClusterError as error:
            LOG.warning(
                'request %s: server %s: %s',
                record.request.uuid,
                plans.shortened_list(
                    [*map(self._named, record.request.servers)]
                ),
                error,
            )
        except Exception as error:  # noqa: BLE001 - others go on
            self._quarantine.put(_K.REQUEST, record.request.uuid, error)

    def budget(self, most: int) -> pace.WorkBudget:
        """Return the limit of one kind of work in this cycle."""
        return pace.WorkBudget(most, _WORKS_S, self._monotonic)


def _raises_error(
    do: Callable[[Sequence[records.RequestRecord]], object],
    some: Sequence[records.RequestRecord],
) -> bool:
    try:
        do(some)
    except Exception:  # noqa: BLE001 - that it raises is what is asked
        return True
    return False
