# SPDX-License-Identifier: Apache-2.0

"""Names of servers, projects and users, as far as the user may list them."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import functools
import logging
from typing import Any
from typing import Protocol

from nova_fairness.client import naming

LOG = logging.getLogger(__name__)

_TEXTS = (
    *('advice', 'explanation', 'fault', 'faults', 'problem', 'status'),
    *('summary', 'warnings'),
)
"""Texts of answers, and lists of texts, that may name things by their IDs."""


class NameSource(Protocol):
    """Names by ID that a user may list; a list may raise any exception."""

    @property
    def is_operator(self) -> bool:
        """Whether servers of all projects are asked for."""

    def own(self) -> Mapping[str, str]:
        """Those that need no list."""

    def projects(self) -> Mapping[str, str]:
        """Those of projects."""

    def users(self) -> Mapping[str, str]:
        """Those of users."""

    def servers(self, *, is_everywhere: bool) -> Mapping[str, str]:
        """Those of servers of all projects, or of the own one."""


class NameDirectory:
    """Names by ID, for one page.

    Each list is asked for once, when a page first needs it: servers of Nova,
    projects and users of Keystone. A thing that is in no list keeps its ID.
    """

    def __init__(self, lists: NameSource) -> None:
        self._lists = lists

    def get(self, key: str | None) -> str:
        """The name of an ID; empty if it is not known."""
        if not key:
            return ''
        lists = ('_servers',) if '-' in key else ('_projects', '_users')
        for each in ('_own', *lists):
            found: Mapping[str, str] = getattr(self, each)
            if key in found:
                return found[key]
        return ''

    def account(self, given: Any) -> str:
        """A project, ``PROJECT/USER`` or anything else that has an ID."""
        return naming.account(str(given), self.get) if given else ''

    def servers(self, given: Iterable[str] | None) -> list[str]:
        """Names of servers; those that are not known keep their IDs."""
        return [self.get(each) or each for each in given or ()]

    def told(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """A thing of the interface whose texts have names for IDs."""
        return {
            key: self._named(value) if key in _TEXTS else value
            for key, value in item.items()
        }

    def _named(self, value: Any) -> Any:
        if isinstance(value, str):
            return naming.sentence(value, self.get)
        return [*map(self._named, value)] if isinstance(value, list) else value

    @functools.cached_property
    def _own(self) -> Mapping[str, str]:
        return self._lists.own()

    @functools.cached_property
    def _projects(self) -> Mapping[str, str]:
        return _names(self._lists.projects) or {}

    @functools.cached_property
    def _users(self) -> Mapping[str, str]:
        return _names(self._lists.users) or {}

    @functools.cached_property
    def _servers(self) -> Mapping[str, str]:
        """Those of all projects for operators, else of the own one."""
        found = None
        if self._lists.is_operator:
            found = _names(lambda: self._lists.servers(is_everywhere=True))
        if found is None:
            found = _names(lambda: self._lists.servers(is_everywhere=False))
        return found or {}


def _names(
    listed: Callable[[], Mapping[str, str]],
) -> Mapping[str, str] | None:
    """Names by ID; ``None`` if the list is refused."""
    try:
        return listed()
    except Exception as error:  # noqa: BLE001  # of any library below
        LOG.debug('names are not known, a list is refused: %s', error)
        return None
