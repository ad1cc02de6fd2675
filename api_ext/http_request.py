# SPDX-License-Identifier: Apache-2.0

"""A validated request of a caller, as input of the handlers."""

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
    """Owner, host and state of an instance in Nova.

    :ivar host: name of the host; ``None`` during a migration; '' without a
        host.
    :ivar state: state in Nova, such as ``stopped``; '' if unknown.
    """

    host: str | None
    user_id: str
    project_id: str
    name: str = ''
    state: str = ''


class Locate(Protocol):
    """Finds an instance in Nova, so that not every agent must be queried."""

    def __call__(self, context: Any, uuid: str) -> Owner:
        """Return owner, host and state of an instance.

        :raises LookupError: if it does not exist.
        """


@dataclasses.dataclass(frozen=True)
class CallerRequest:
    """A request of a caller, validated and parsed.

    :ivar caller: the caller.
    :ivar names: values of the placeholders of the path; ``me`` is replaced by
        an ID.
    :ivar query: query parameters by name.
    :ivar body: body that follows its schema.
    :ivar url: URL without the query.
    :ivar connect: returns the agents; may raise :class:`faults.Unavailable`.
    :ivar max_limit: largest number of items per page.
    :ivar now_s: seconds since the Unix epoch.
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

    def log(self, action: str) -> None:
        """Log an action that the caller requested.

        :param action: description of the action.
        """
        LOG.info(
            '%s: requested by user %s in %s',
            action,
            self.caller.user_id,
            self.caller.request_id,
        )

    @property
    def agents(self) -> agents_module.Agents:
        """Agents whose calls carry the IDs of this request."""
        return self.connect().for_request(
            self.caller.request_id, self.caller.user_id or ''
        )

    @property
    def requests(self) -> requests_module.RequestsClient:
        """Client of the cluster service whose calls carry the IDs of this
        request.
        """
        return self.connect_requests().for_request(
            self.caller.request_id, self.caller.user_id or ''
        )
