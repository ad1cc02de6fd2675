# SPDX-License-Identifier: Apache-2.0

"""Tables that only the leader writes."""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
from typing import Generic
from typing import ParamSpec

from oslo_log import log as logging

from nova_fairness.cluster.store import database

LOG = logging.getLogger(__name__)

_Told = ParamSpec('_Told')


def safely(told: Callable[_Told, None]) -> Callable[_Told, None]:
    """Wrap a listener, so that its errors do not undo the change before."""

    def tell(*given: _Told.args, **named: _Told.kwargs) -> None:
        try:
            told(*given, **named)
        except Exception:
            LOG.exception('a listener failed; the change is stored')

    return tell


class LeaderTable(Generic[_Told]):
    """A table whose writes name the epoch of the leader.

    :param rows: tables of the database.
    :param check_leads: raises ``Deposed`` unless an epoch is the newest.
    """

    def __init__(
        self, rows: database.Tables, check_leads: Callable[[int], None]
    ) -> None:
        self._tables = rows
        self._check_leads = check_leads
        self._listeners: tuple[Callable[_Told, None], ...] = ()

    def listen(self, changed: Callable[_Told, None]) -> None:
        """Add a listener that is called after each change by this object."""
        self._listeners = (*self._listeners, safely(changed))

    @contextlib.contextmanager
    def listening(self, changed: Callable[_Told, None]) -> Iterator[None]:
        """Call a listener after each change, until the context ends."""
        told = safely(changed)
        self._listeners = (*self._listeners, told)
        try:
            yield
        finally:
            left = (each for each in self._listeners if each is not told)
            self._listeners = tuple(left)

    def _changed(self, *given: _Told.args, **named: _Told.kwargs) -> None:
        for told in self._listeners:
            told(*given, **named)
