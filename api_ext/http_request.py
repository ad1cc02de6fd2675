# SPDX-License-Identifier: Apache-2.0

"""A checked request, and its answer."""

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

    :ivar host: name of the host; ``None`` while it is uncertain; '' without
        one.
    :ivar state: state of Nova, such as ``stopped``; '' if unknown.
    """

    host: str | None
    user_id: str
    project_id: str
    name: str = ''
    state: str = ''


class Locate(Protocol):
    """Finds an instance without asking every agent."""

    def __call__(self, context: Any, uuid: str) -> Owner:
        """Find an instance.

        :raises LookupError: if it does not exist.
        """


@dataclasses.dataclass(frozen=True)
class CallerRequest:
    """A request of a caller, checked and split.

    :ivar caller: the caller.
    :ivar names: values of the placeholders of the path; ``me`` is replaced.
    :ivar query: parameters by name.
    :ivar body: body, checked by its schema.
    :ivar url: URL without the query.
    :ivar connect: returns the agents; may raise :class:`faults.Unavailable`.
    :ivar max_limit: largest number of items of a page.
    :ivar now_s: seconds of the Unix epoch.
    :ivar connect_requests: returns the client of the cluster service.
    :ivar locate: finds instances; ``None`` without Nova.
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
        """Log what the caller requested."""
        LOG.info(
            '%s was asked for by user %s in %s',
            what,
            self.caller.user_id,
            self.caller.request_id,
        )

    @property
    def agents(self) -> agents_module.Agents:
        """The agents; calls carry the IDs of this request."""
        return self.connect().of_request(
            self.caller.request_id, self.caller.user_id or ''
        )

    @property
    def requests(self) -> requests_module.RequestsClient:
        """The cluster service; calls carry the IDs of this request."""
        return self.connect_requests().of_request(
            self.caller.request_id, self.caller.user_id or ''
        )
