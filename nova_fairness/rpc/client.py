# SPDX-License-Identifier: Apache-2.0

"""RPC client of agents: calls one agent, or many at the same time."""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import copy
import dataclasses
import itertools
import logging
import math
import queue
import random
import threading
import time
from typing import Any
from typing import Generic
from typing import Self
from typing import TypeVar

import oslo_messaging

from nova_fairness import exception
from nova_fairness.model import plain
from nova_fairness.model import wording
from nova_fairness.rpc import protocol
from nova_fairness.rpc import request_ids

LOG = logging.getLogger(__name__)

ALLOWED_REMOTE_MODULES = (exception.__name__,)
"""Modules to allow on a transport, so that errors keep their classes."""

_ASKED_FOR_PEERS = 3
"""Number of agents that are queried for hosts, because a new agent does not
know all hosts yet.
"""

_MOST_DOUBTFUL = 64
"""Largest number of hosts that are believed to exist although agents disagree.
If there are more, this number of hosts is asked.
"""


@dataclasses.dataclass(frozen=True)
class Answers:
    """Answers of many hosts; all sorted by host.

    :ivar by_host: answers by host.
    :ivar not_reached: by host, the reason for a missing answer.
    :ivar refused: by host, the reason why the host did not execute the call.
    """

    by_host: Mapping[str, Any]
    not_reached: Mapping[str, str]
    refused: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether every host executed the call."""
        return not self.not_reached and not self.refused


class FairnessClient:
    """RPC client of the agents of one fairness domain; for any thread.

    :param transport: transport that was created with
        :data:`ALLOWED_REMOTE_MODULES`.
    :param timeout_s: seconds to wait for each answer, > 0.
    :param domain: the agents' ``[fairness_exchange] domain``.
    :param at_once: largest number of hosts that are called at the same time.
    :param topic: topic of the calls.
    :ivar context: context that calls carry; see :meth:`for_request`.
    """

    def __init__(
        self,
        transport: oslo_messaging.Transport,
        timeout_s: float = 10.0,
        domain: str = protocol.DEFAULT_DOMAIN,
        at_once: int = 64,
        topic: str = protocol.TOPIC,
    ) -> None:
        self._domain = domain
        self._timeout_s = timeout_s
        self._at_once = at_once
        self.context: Mapping[str, str] = {}
        self._client = oslo_messaging.get_rpc_client(
            transport,
            oslo_messaging.Target(
                exchange=domain,
                topic=topic,
                version=protocol.FIRST,
            ),
            timeout=timeout_s,
        )

    def for_request(self, request_id: str, user_id: str = '') -> Self:
        """Return a client whose calls carry the IDs of a request and a user.

        It shares all its state with this client.

        :param request_id: 1 to :data:`protocol.LONGEST_NAME` printable
            characters; agents write it into their logs.
        :param user_id: user who made the request, in the same form; empty if
            unknown.
        """
        other = copy.copy(self)
        other.context = {
            request_ids.KEY: request_id,
            request_ids.USER: user_id,
        }
        return other

    def call(self, host: str | None, method: str, **arguments: Any) -> Any:
        """Call one agent.

        :param host: its name; ``None`` for any agent of the domain.
        :returns: its answer.
        :raises HostNotReached: if no answer came in time.
        :raises FairnessError: error that the agent raised, with its class.
        """
        name = host or ''
        answers, errors = self._ask([name], method, arguments)
        if name in errors:
            raise errors[name]
        return answers[name]

    def _ask(
        self, hosts: Iterable[str], method: str, arguments: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], Mapping[str, exception.FairnessError]]:
        return ask_all(
            hosts,
            lambda host: self._call(host, method, arguments),
            self._at_once,
            self._patience_s(method),
        )

    def _patience_s(self, method: str) -> float:
        """Return the seconds to wait for the answer of a host."""
        return max(self._timeout_s, protocol.ANSWERED_IN_S.get(method, 0.0))

    def _call(
        self, host: str, method: str, arguments: Mapping[str, Any]
    ) -> Any:
        whom: dict[str, str] = {'server': host} if host else {}
        patience_s = self._patience_s(method)
        asked = self._client.prepare(
            version=protocol.SINCE.get(method, protocol.FIRST),
            timeout=patience_s,
            **whom,
        )
        try:
            return asked.call(dict(self.context), method, **arguments)
        except oslo_messaging.MessagingTimeout as error:
            raise exception.HostNotReached(
                f'no answer within {patience_s:g} s'
            ) from error
        except oslo_messaging.RemoteError as error:
            raise exception.RpcError(_remote_text(error)) from error
        except oslo_messaging.UnsupportedVersion as error:
            # A driver within one process raises this error instead of
            # RemoteError.
            raise exception.RpcError(
                f'UnsupportedVersion: {_first_line(error)}'
            ) from error
        except oslo_messaging.MessagingException as error:
            raise exception.HostNotReached(_first_line(error)) from error
        except exception.FairnessError as error:
            raise _without_traceback(error) from error
        except Exception as error:
            raise _error_of_driver(error) from error

    def call_all(
        self, hosts: Iterable[str], method: str, **arguments: Any
    ) -> Answers:
        """Call many agents, in parallel.

        The time is at most the timeout, multiplied by the number of hosts
        without answer divided by ``at_once``, rounded up.
        """
        return _by_outcome(*self._ask(hosts, method, arguments))

    def find_instance(self, hosts: Iterable[str], uuid: str) -> Answers:
        """Query many agents for a VM that is on one of their hosts.

        :returns: answers; hosts that answered without the VM are omitted,
            unless no host has it.
        """
        answers, errors = self._ask(hosts, 'get_instance', {'uuid': uuid})
        if answers:
            errors = {
                host: error
                for host, error in errors.items()
                if not isinstance(error, exception.UnknownInstance)
            }
        return _by_outcome(answers, errors)

    def known_hosts(self) -> tuple[str, ...]:
        """Query some agents, chosen by the transport, for the hosts of the
        domain.

        Agents of a group answer in turn, so several calls reach several
        agents. All calls run in parallel and need at most the timeout.

        :returns: names of these agents' hosts and of all their peers, sorted.
        :raises HostNotReached: if no agent answers.
        """
        answers, errors = ask_all(
            map(str, range(_ASKED_FOR_PEERS)),
            lambda _: self._call('', 'get_status', {}),
            _ASKED_FOR_PEERS,
            self._timeout_s,
        )
        said = _hosts_by_status(answers.values())
        if not said:
            odd = 'the status of an agent cannot be understood'
            failures = [exception.RpcError(odd) for _ in answers]
            raise self._no_hosts_error([*errors.values(), *failures])
        known = set[str]().union(*said.values())
        doubtful = {
            name
            for name in known - said.keys()
            if len(said) == 1
            or any(name not in each for each in said.values())
        }
        if len(doubtful) > _MOST_DOUBTFUL:
            known -= self._invented_names(said.values(), doubtful)
        return tuple(sorted(known))

    def _invented_names(
        self, said: Iterable[set[str]], doubtful: set[str]
    ) -> set[str]:
        """Find names that an agent may have invented.

        Some hosts are asked. A name that two of them give belongs to a host.

        :param said: names that each agent gave.
        :param doubtful: names that not all agents gave, or that only one agent
            gave.
        """
        asked = _random_hosts(said, doubtful)
        answers, _ = ask_all(
            asked,
            lambda host: self._call(host, 'get_status', {}),
            _MOST_DOUBTFUL,
            self._timeout_s,
        )
        times = collections.Counter(
            itertools.chain.from_iterable(
                _hosts_by_status(answers.values()).values()
            )
        )
        needed = 2 if len(answers) > 1 else 1
        invented = {
            name for name in doubtful - {*asked} if times[name] < needed
        }
        if invented:
            LOG.warning(
                '%s, such as %.100s: no two agents that answer name them',
                wording.counted(
                    len(invented),
                    'host that an agent names is left out',
                    'hosts that an agent names are left out',
                ),
                plain.line(min(invented)),
            )
        return invented

    def _no_hosts_error(
        self, failures: Sequence[exception.FairnessError]
    ) -> exception.FairnessError:
        """Return the error if no agent lists the hosts of the domain."""
        for failure in failures:
            if not isinstance(failure, exception.HostNotReached):
                return failure
        return exception.HostNotReached(
            f'no agent of domain {self._domain} said which hosts there are: '
            f'{failures[0]}'
        )


def _hosts_by_status(statuses: Iterable[Any]) -> dict[str, set[str]]:
    """Return the names that each host reports, by host; unusable statuses are
    omitted.
    """
    found: dict[str, set[str]] = {}
    for status in statuses:
        with contextlib.suppress(LookupError, TypeError):
            host, peers = str(status['host']), map(str, status['peers'])
            found[host] = found.get(host, set()) | {host, *peers}
    return found


def _random_hosts(said: Iterable[set[str]], doubtful: set[str]) -> list[str]:
    """Return a random choice of hosts, with equal numbers from each agent."""
    of_each = (sorted(each & doubtful) for each in said)
    shuffled = [random.sample(each, len(each)) for each in of_each]
    turns = itertools.zip_longest(*shuffled)
    names = dict.fromkeys(itertools.chain.from_iterable(turns))
    names.pop(None, None)
    return list(names)[:_MOST_DOUBTFUL]


def _by_outcome(
    answers: Mapping[str, Any],
    errors: Mapping[str, exception.FairnessError],
) -> Answers:
    """Sort answers and errors by outcome: answered, not reached, refused."""
    return Answers(
        answers,
        not_reached={
            host: str(error)
            for host, error in errors.items()
            if isinstance(error, exception.HostNotReached)
        },
        refused={
            host: str(error)
            for host, error in errors.items()
            if not isinstance(error, exception.HostNotReached)
        },
    )


def _without_traceback(
    error: exception.FairnessError,
) -> exception.FairnessError:
    """Return a remote error with its original class.

    oslo.messaging gives it a class whose text ends with the traceback.
    """
    kind = next(
        kind
        for kind in type(error).__mro__
        if kind.__module__ == exception.__name__
    )
    if type(error) is kind:
        return error
    return kind(*error.args)  # type: ignore[no-any-return]  # one of ours


def _error_of_driver(error: Exception) -> exception.RpcError:
    """Distinguish a bug of an agent from a failed connection.

    Python's own exceptions are sent over the wire. For connections, each
    driver has its own classes, or uses those of the operating system.
    """
    text = f'{type(error).__name__}: {_first_line(error)}'
    is_pythons = type(error).__module__ == 'builtins'
    if is_pythons and not isinstance(error, OSError):
        return exception.RpcError(text)
    return exception.HostNotReached(text)


def _remote_text(error: oslo_messaging.RemoteError) -> str:
    return f'{error.exc_type}: {error.value}'


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


T = TypeVar('T')

_GRACE_S = 1.0
"""Additional seconds for the threads, so that the error of the transport comes
first.
"""


class _ParallelCalls(Generic[T]):
    """Calls hosts in daemon threads, so that an interrupted program ends at
    once.
    """

    def __init__(
        self, hosts: Iterable[str], ask: Callable[[str], T], at_once: int
    ) -> None:
        self._waiting = collections.deque(hosts)
        self._ask = ask
        self._answers: queue.SimpleQueue[
            tuple[str, T | None, BaseException | None]
        ] = queue.SimpleQueue()
        self._count = len(self._waiting)
        for _ in range(min(at_once, self._count)):
            threading.Thread(
                target=self._serve, name='asking', daemon=True
            ).start()

    def _serve(self) -> None:
        while True:
            try:
                host = self._waiting.popleft()
            except IndexError:
                return
            try:
                self._answers.put((host, self._ask(host), None))
            except BaseException as error:  # noqa: BLE001 - told by gather
                self._answers.put((host, None, error))

    def gather(
        self, limit_s: float
    ) -> Iterable[tuple[str, T | None, BaseException | None]]:
        """Yield the answers that arrive in time."""
        until_s = time.monotonic() + limit_s
        try:
            for _ in range(self._count):
                yield self._answers.get(
                    timeout=max(0.0, until_s - time.monotonic())
                )
        except queue.Empty:
            return
        finally:
            self._waiting.clear()


def ask_all(
    hosts: Iterable[str],
    ask: Callable[[str], T],
    at_once: int,
    timeout_s: float,
) -> tuple[Mapping[str, T], Mapping[str, exception.FairnessError]]:
    """Call a function for every host, in parallel.

    :param hosts: names in any order; each host is called once.
    :param ask: called in other threads, several at the same time.
    :param at_once: largest number of hosts at the same time, >= 1.
    :param timeout_s: longest time for one host, seconds. A host that needs
        longer is abandoned, because some transports try to connect for ever.
    :returns: answers and errors by host, both sorted by host.
    :raises Exception: error of ``ask``, if it is no :class:`.FairnessError`.
    """
    asked = sorted(set(hosts))
    turns = math.ceil(len(asked) / at_once)
    answers: dict[str, T] = {}
    errors: dict[str, exception.FairnessError] = {}
    for host, answer, error in _ParallelCalls(asked, ask, at_once).gather(
        turns * timeout_s + _GRACE_S
    ):
        if error is None:
            answers[host] = answer  # type: ignore[assignment]  # asked, no error
        elif isinstance(error, exception.FairnessError):
            errors[host] = error
        else:
            raise error
    for host in set(asked) - set(answers) - set(errors):
        errors[host] = exception.HostNotReached(
            f'no connection within {timeout_s:g} s'
        )
    return dict(sorted(answers.items())), dict(sorted(errors.items()))
