# SPDX-License-Identifier: Apache-2.0

"""Client of the agents of the domain, for one process of nova-api."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import copy
import dataclasses
import logging
from typing import Any
from typing import Generic
from typing import Self
from typing import TypeVar

from api_ext import answer_cache
from api_ext import faults
from nova_fairness import exception
from nova_fairness.rpc import client as client_module
from nova_fairness.rpc import rollout
from nova_fairness.rpc import silence

LOG = logging.getLogger(__name__)

T = TypeVar('T')

_LONGEST_REASON = 300
_NOT_UNDERSTOOD = 'its answer cannot be parsed'
_CACHED_METHODS = ('list_users', 'list_projects', 'get_plugins', 'get_status')
"""RPC methods whose answers are cached."""

_NOBODY = 'No agent answers: the state of the hosts is unknown.'


@dataclasses.dataclass(frozen=True)
class AgentAnswers(Generic[T]):
    """Answers of the agents of several hosts.

    :ivar by_host: answers by host, sorted by host.
    :ivar missing: by host, the reason for a missing answer; sorted by host.
    """

    by_host: Mapping[str, T]
    missing: Mapping[str, str]

    def require_any(self) -> None:
        """Check that at least one host answered.

        :raises Unavailable: if no host answered.
        """
        if not self.by_host:
            raise faults.Unavailable(_NOBODY)


@dataclasses.dataclass(frozen=True)
class CallLimits:
    """Limits of calls to agents.

    :ivar kept_s: seconds for which answers are cached.
    :ivar silent_s: seconds for which lists skip a host that did not answer.
    :ivar hosts_count: largest number of hosts that the transport allows;
        ``None`` for no limit.
    """

    kept_s: float = 1.0
    silent_s: float = 10.0
    hosts_count: int | None = None


class Agents:
    """Client of all agents of the domain, with a short-lived cache of answers.

    :ivar client: RPC client of the agents. Copies for single requests have
        clients with the IDs of the request.
    :param signer: signs the metric and policy if agents use keys.
    """

    def __init__(
        self,
        client: client_module.FairnessClient,
        limits: CallLimits,
        signer: rollout.Signer | None = None,
    ) -> None:
        self.client = client
        self._limits = limits
        self._signer = signer
        self._silence = silence.Silence(limits.silent_s)
        self._hosts: answer_cache.CachedValue[tuple[str, ...]] = (
            answer_cache.CachedValue(limits.kept_s)
        )
        self._lists: Mapping[
            str, answer_cache.CachedValue[client_module.Answers]
        ] = {
            method: answer_cache.CachedValue(limits.kept_s)
            for method in _CACHED_METHODS
        }

    def for_request(self, request_id: str, user_id: str = '') -> Self:
        """Return a copy whose calls carry the IDs of a request and a user."""
        view = copy.copy(self)
        view.client = self.client.for_request(request_id, user_id)
        return view

    def hosts(self, *, fresh: bool = False) -> tuple[str, ...]:
        """Return the names of the hosts of the domain.

        :param fresh: whether to query the hosts despite a cached answer.
        :raises Unavailable: if no agent answers, or the transport does not
            allow so many hosts.
        """
        try:
            names = self._hosts.get(self.client.known_hosts, fresh=fresh)
        except exception.FairnessError as error:
            LOG.warning('List of hosts not read from any agent: %s', error)
            raise faults.Unavailable(_NOBODY) from error
        most = self._limits.hosts_count
        if most is not None and len(names) > most:
            raise faults.Unavailable(
                f'transport_url uses a broker, and the domain has '
                f'{len(names)} hosts: more than {most} hosts need '
                'zmq+redis://.'
            )
        return names

    def require(self, host: str) -> None:
        """Check that a host exists.

        :raises NotFound: if it does not exist.
        """
        if host not in self.hosts() and host not in self.hosts(fresh=True):
            raise faults.NotFound(f'Host {host} could not be found.')

    def call(self, host: str, method: str, **arguments: Any) -> Any:
        """Call a method of one agent.

        :raises FairnessError: error of the RPC client.
        """
        return self.client.call(host, method, **arguments)

    def call_all(
        self, hosts: Iterable[str], method: str, **arguments: Any
    ) -> client_module.Answers:
        """Call a method of many agents at the same time."""
        answers = self.client.call_all(hosts, method, **arguments)
        self._silence.note(
            (*answers.by_host, *answers.refused), answers.not_reached
        )
        return answers

    def call_responsive(
        self, hosts: Iterable[str], method: str, **arguments: Any
    ) -> client_module.Answers:
        """Call a method of many agents, except agents that did not answer
        recently.
        """
        named = tuple(hosts)
        silent = self._silence.among(named)
        answers = self.call_all(
            (host for host in named if host not in silent), method, **arguments
        )
        return dataclasses.replace(
            answers, not_reached={**answers.not_reached, **silent}
        )

    def set_for_all(self, method: str, name: str) -> client_module.Answers:
        """Set the metric or policy of all hosts, with one epoch."""
        hosts = self.hosts(fresh=True)
        return rollout.set_for_all(
            self.client, hosts, method, name, self._signer
        )

    def set_through_host(self, host: str, method: str, name: str) -> Any:
        """Set the metric or policy of the domain through one host, whose
        reports carry it to the others.

        :raises FairnessError: error of the RPC client.
        """
        given: Mapping[str, Any] = {'name': name}
        if self._signer is not None:
            statuses = {host: self.call(host, 'get_status')}
            given = rollout.signed(
                self.client.context, statuses, method, name, self._signer
            )
        return self.call(host, method, **given)

    def query_all(
        self, method: str, shape: Callable[[Any], T]
    ) -> AgentAnswers[T]:
        """Query all agents for slowly changing values, with a cache.

        :param method: RPC method without arguments.
        :param shape: extracts the result from one answer.
        """
        hosts = self.hosts()
        answers = self._lists[method].get(
            lambda: self.call_responsive(hosts, method)
        )
        return parse_answers(answers, shape)


def parse_answers(
    answers: client_module.Answers, shape: Callable[[Any], T]
) -> AgentAnswers[T]:
    """Extract results from answers; an answer that cannot be parsed counts as
    missing.

    :param shape: extracts the result from one answer.
    """
    by_host: dict[str, T] = {}
    missing = short_reasons({**answers.not_reached, **answers.refused})
    for host, answer in answers.by_host.items():
        try:
            by_host[host] = shape(answer)
        except exception.UNREADABLE:
            missing[host] = _NOT_UNDERSTOOD
    return AgentAnswers(by_host, dict(sorted(missing.items())))


def short_reasons(errors: Mapping[str, str]) -> dict[str, str]:
    """Return the first line of each error text, limited in length.

    :param errors: error texts by host.
    """
    return {
        host: (text.splitlines() or [''])[0][:_LONGEST_REASON]
        for host, text in errors.items()
    }
