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
_NOT_UNDERSTOOD = 'its answer cannot be understood'
_KEPT = ('list_users', 'list_projects', 'get_plugins', 'get_status')
"""Calls whose answers are cached."""

_NOBODY = 'No agent answers: nothing is known of the hosts.'


@dataclasses.dataclass(frozen=True)
class AgentAnswers(Generic[T]):
    """Answers of hosts.

    :ivar by_host: answers, sorted by host.
    :ivar missing: why hosts have no answer, sorted by host.
    """

    by_host: Mapping[str, T]
    missing: Mapping[str, str]

    def require_any(self) -> None:
        """Check that any host answered.

        :raises Unavailable: otherwise.
        """
        if not self.by_host:
            raise faults.Unavailable(_NOBODY)


@dataclasses.dataclass(frozen=True)
class AskLimits:
    """Limits of calls to agents.

    :ivar kept_s: seconds for which answers are cached.
    :ivar silent_s: seconds for which lists skip a host that did not answer.
    :ivar hosts_count: largest number of hosts that the transport allows.
    """

    kept_s: float = 1.0
    silent_s: float = 10.0
    hosts_count: int | None = None


class Agents:
    """Asks agents, and caches their answers for a short time.

    :ivar client: RPC client of the agents; views differ in the ID of the
        request.
    :param signer: signs metric and policy if peers have keys.
    """

    def __init__(
        self,
        client: client_module.FairnessClient,
        limits: AskLimits,
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
            method: answer_cache.CachedValue(limits.kept_s) for method in _KEPT
        }

    def of_request(self, request_id: str, user_id: str = '') -> Self:
        """A view whose calls carry the IDs of request and user."""
        view = copy.copy(self)
        view.client = self.client.of_request(request_id, user_id)
        return view

    def hosts(self, *, fresh: bool = False) -> tuple[str, ...]:
        """Names of the hosts of the domain.

        :param fresh: whether to ask again despite a cached answer.
        :raises Unavailable: if no agent answers, or the transport does not
            allow so many hosts.
        """
        try:
            names = self._hosts.get(self.client.known_hosts, fresh=fresh)
        except exception.FairnessError as error:
            LOG.warning('No agent said which hosts there are: %s', error)
            raise faults.Unavailable(_NOBODY) from error
        most = self._limits.hosts_count
        if most is not None and len(names) > most:
            raise faults.Unavailable(
                f'transport_url names a broker, and the domain has '
                f'{len(names)} hosts: more than {most} need zmq+redis://.'
            )
        return names

    def require(self, host: str) -> None:
        """Check that a host exists.

        :raises NotFound: otherwise.
        """
        if host not in self.hosts() and host not in self.hosts(fresh=True):
            raise faults.NotFound(f'Host {host} could not be found.')

    def call(self, host: str, method: str, **arguments: Any) -> Any:
        """Call one agent.

        :raises FairnessError: error of the client.
        """
        return self.client.call(host, method, **arguments)

    def to_all(
        self, hosts: Iterable[str], method: str, **arguments: Any
    ) -> client_module.Answers:
        """Call many agents at once."""
        answers = self.client.to_all(hosts, method, **arguments)
        self._silence.note(
            (*answers.by_host, *answers.refused), answers.not_reached
        )
        return answers

    def look(
        self, hosts: Iterable[str], method: str, **arguments: Any
    ) -> client_module.Answers:
        """Call many agents, except those that recently did not answer."""
        named = tuple(hosts)
        silent = self._silence.among(named)
        answers = self.to_all(
            (host for host in named if host not in silent), method, **arguments
        )
        return dataclasses.replace(
            answers, not_reached={**answers.not_reached, **silent}
        )

    def set_for_all(self, method: str, name: str) -> client_module.Answers:
        """Set metric or policy of all hosts, as one epoch."""
        hosts = self.hosts(fresh=True)
        return rollout.set_for_all(
            self.client, hosts, method, name, self._signer
        )

    def set_by(self, host: str, method: str, name: str) -> Any:
        """Set metric or policy, and send it to one host.

        :raises FairnessError: error of the client.
        """
        given: Mapping[str, Any] = {'name': name}
        if self._signer is not None:
            statuses = {host: self.call(host, 'get_status')}
            given = rollout.signed(
                self.client.context, statuses, method, name, self._signer
            )
        return self.call(host, method, **given)

    def told(self, method: str, shape: Callable[[Any], T]) -> AgentAnswers[T]:
        """Ask all agents, with a cache, for slowly changing values.

        :param method: method without arguments.
        :param shape: extracts the result from an answer.
        """
        hosts = self.hosts()
        answers = self._lists[method].get(lambda: self.look(hosts, method))
        return understood(answers, shape)


def understood(
    answers: client_module.Answers, shape: Callable[[Any], T]
) -> AgentAnswers[T]:
    """Extract results from answers; a broken answer counts as missing."""
    by_host: dict[str, T] = {}
    missing = reasons({**answers.not_reached, **answers.refused})
    for host, answer in answers.by_host.items():
        try:
            by_host[host] = shape(answer)
        except exception.UNREADABLE:
            missing[host] = _NOT_UNDERSTOOD
    return AgentAnswers(by_host, dict(sorted(missing.items())))


def reasons(why: Mapping[str, str]) -> dict[str, str]:
    """First lines of error texts, cut to a limit."""
    return {
        host: (text.splitlines() or [''])[0][:_LONGEST_REASON]
        for host, text in why.items()
    }
