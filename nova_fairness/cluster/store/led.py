# SPDX-License-Identifier: Apache-2.0

"""Base class of tables that only the leader writes."""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
from typing import Generic
from typing import ParamSpec

from oslo_log import log as logging

from nova_fairness.cluster.store import database

LOG = logging.getLogger(__name__)

_Told = ParamSpec('_Told')


def log_listener_errors(
    listener: Callable[_Told, None],
) -> Callable[_Told, None]:
    """Wrap a listener so that its errors are logged: the change before them is
    stored already.
    """

    def call_listener(*given: _Told.args, **named: _Told.kwargs) -> None:
        """Call the listener, and log its errors."""
        try:
            listener(*given, **named)
        except Exception:
            LOG.exception('a listener of a table failed; the change is stored')

    return call_listener


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

    def add_listener(self, listener: Callable[_Told, None]) -> None:
        """Add a listener that is called after each change by this object."""
        self._listeners = (*self._listeners, log_listener_errors(listener))

    @contextlib.contextmanager
    def temporary_listener(
        self, listener: Callable[_Told, None]
    ) -> Iterator[None]:
        """Call a listener after each change, until the context ends."""
        told = log_listener_errors(listener)
        self._listeners = (*self._listeners, told)
        try:
            yield
        finally:
            left = (each for each in self._listeners if each is not told)
            self._listeners = tuple(left)

    def _notify_listeners(
        self, *given: _Told.args, **named: _Told.kwargs
    ) -> None:
        """Call all listeners after a change."""
        for told in self._listeners:
            told(*given, **named)
