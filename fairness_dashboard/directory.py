# SPDX-License-Identifier: Apache-2.0

"""Names of servers, projects and users, by ID."""

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
    """Lists of names that a user may read; a list may raise any exception."""

    @property
    def is_operator(self) -> bool:
        """Whether the page shows servers of all projects."""

    def own(self) -> Mapping[str, str]:
        """Return the names that are known without a list."""

    def projects(self) -> Mapping[str, str]:
        """Return the names of projects by ID."""

    def users(self) -> Mapping[str, str]:
        """Return the names of users by ID."""

    def servers(self, *, is_everywhere: bool) -> Mapping[str, str]:
        """Return the names of servers by ID.

        :param is_everywhere: list the servers of all projects.
        """


class NameDirectory:
    """Names by ID, for one page.

    It reads each list once, when a page first needs it: servers from Nova,
    projects and users from Keystone. An ID without a name is shown as it is.
    """

    def __init__(self, lists: NameSource) -> None:
        self._lists = lists

    def get(self, key: str | None) -> str:
        """Return the name of an ID; an empty text if there is none."""
        if not key:
            return ''
        lists = ('_servers',) if '-' in key else ('_projects', '_users')
        for each in ('_own', *lists):
            found: Mapping[str, str] = getattr(self, each)
            if key in found:
                return found[key]
        return ''

    def account(self, given: Any) -> str:
        """Return the title of an account: a project, or ``PROJECT/USER``."""
        return naming.account(str(given), self.get) if given else ''

    def servers(self, given: Iterable[str] | None) -> list[str]:
        """Return the names of servers, or IDs of servers without a name."""
        return [self.get(each) or each for each in given or ()]

    def with_names(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of an API object in which names replace IDs."""
        return {
            key: self._with_names(value) if key in _TEXTS else value
            for key, value in item.items()
        }

    def _with_names(self, value: Any) -> Any:
        if isinstance(value, str):
            return naming.sentence(value, self.get)
        return (
            [*map(self._with_names, value)]
            if isinstance(value, list)
            else value
        )

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
        """For operators: servers of all projects; else of the own project."""
        found = None
        if self._lists.is_operator:
            found = _names(lambda: self._lists.servers(is_everywhere=True))
        if found is None:
            found = _names(lambda: self._lists.servers(is_everywhere=False))
        return found or {}


def _names(
    listed: Callable[[], Mapping[str, str]],
) -> Mapping[str, str] | None:
    """Return names by ID; ``None`` if the service refuses the list."""
    try:
        return listed()
    except Exception as error:  # noqa: BLE001  # of any library below
        LOG.debug('names are not known, a list is refused: %s', error)
        return None
