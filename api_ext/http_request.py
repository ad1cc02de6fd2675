# SPDX-License-Identifier: Apache-2.0

"""One request, after it was judged, and its answer."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import logging
from typing import Any
from typing import Protocol

from api_ext import agents as agents_module
from api_ext import enforcement
from nova_fairness.rpc import requests as requests_module

LOG = logging.getLogger(__name__)

Answer = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Owner:
    """Owner, host and state of an instance, as Nova knows them.

    :ivar host: ``None`` while that is not sure; empty if it is on none.
    :ivar state: Nova's, such as ``stopped``; empty if it is not told.
    """

    host: str | None
    user_id: str
    project_id: str
    name: str = ''
    state: str = ''


class Locate(Protocol):
    """Finds an instance without asking every agent."""

    def __call__(self, context: Any, uuid: str) -> Owner:
        """Find it.

        :raises LookupError: if there is none.
        """


@dataclasses.dataclass(frozen=True)
class CallerRequest:
    """A request of a caller, checked and split.

    :ivar names: from the URL, by their place in it; ``me`` is replaced.
    :ivar query: parameters by name.
    :ivar body: what the schema let pass.
    :ivar url: without the query.
    :ivar connect: gives the agents; :class:`faults.Unavailable` if it cannot.
    :ivar max_limit: most items of a page.
    :ivar now_s: seconds since the epoch of Unix.
    :ivar connect_requests: gives the client of the cluster service.
    """

    caller: enforcement.Caller
    names: Mapping[str, str]
    query: Mapping[str, Any]
    body: Any
    url: str
    connect: Callable[[], agents_module.Agents]
    max_limit: int
    now_s: float
    connect_requests: Callable[[], requests_module.RequestsClient]
    locate: Locate | None = None

    def log(self, what: str) -> None:
        """Write down who asked for something."""
        LOG.info(
            '%s was asked for by user %s in %s',
            what,
            self.caller.user_id,
            self.caller.request_id,
        )

    @property
    def agents(self) -> agents_module.Agents:
        """The agents, called in the name of this request."""
        return self.connect().of_request(
            self.caller.request_id, self.caller.user_id or ''
        )

    @property
    def requests(self) -> requests_module.RequestsClient:
        """The cluster service, called in the name of this request."""
        return self.connect_requests().of_request(
            self.caller.request_id, self.caller.user_id or ''
        )
