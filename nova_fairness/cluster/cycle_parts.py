# SPDX-License-Identifier: Apache-2.0

"""Parts of a cycle: if one part fails, the other parts are still done."""

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
"""Largest number of tries to find the request that makes a part fail."""

_SEARCHES_S = 5.0
"""Seconds that such a search may take."""

_WORKS_S = 10.0
"""Seconds after which a kind of work pauses until the next cycle."""


class CycleParts:
    """Does parts of cycles, and records parts that fail.

    :param quarantine: holds what fails.
    :param renew: renews the lease of this process; raises Deposed.
    :param monotonic: seconds that never go back.
    :param named: returns name and UUID of a server, for the log.
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
        """Begin a cycle."""
        self.left_out = False

    def do(
        self, name: str, do: Callable[..., _T], *arguments: object
    ) -> _T | None:
        """Do a part of a cycle; if it fails, other parts are still done.

        :returns: its result; ``None`` if it failed.
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
        """Do something with all requests, except those that make it fail."""
        try:
            return do(found)
        except (*quarantine_module.PASSES, exception.CloudError):
            raise
        except Exception as error:
            if _fails(do, ()):
                # No request is to blame.
                raise
            budget = culprits.SearchBudget(
                _TRIES, self._monotonic, self._monotonic() + _SEARCHES_S
            )
            blamed, unsure = culprits.find(
                found, lambda some: _fails(do, some), budget
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
        """Do something for one request; if it fails, others are still done."""
        self._renew()
        try:
            do(*arguments)
        except quarantine_module.PASSES:
            raise
        except exception.ClusterError as error:
            LOG.warning(
                'request %s: server %s: %s',
                record.request.uuid,
                plans.listed([*map(self._named, record.request.servers)]),
                error,
            )
        except Exception as error:  # noqa: BLE001 - others go on
            self._quarantine.put(_K.REQUEST, record.request.uuid, error)

    def budget(self, most: int) -> pace.WorkBudget:
        """Limit of one kind of work of this cycle, in units."""
        return pace.WorkBudget(most, _WORKS_S, self._monotonic)


def _fails(
    do: Callable[[Sequence[records.RequestRecord]], object],
    some: Sequence[records.RequestRecord],
) -> bool:
    try:
        do(some)
    except Exception:  # noqa: BLE001 - that it raises is what is asked
        return True
    return False
