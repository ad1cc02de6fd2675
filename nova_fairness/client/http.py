# SPDX-License-Identifier: Apache-2.0

"""Talks to the HTTP interface, which Nova's compute endpoint serves."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any
from urllib import parse

from osc_lib import exceptions
import requests

from nova_fairness.client import sdk
from nova_fairness.model import plain

_UNKNOWN_URL = 'The resource could not be found'
"""Nova's own answer to a URL that no extension serves."""

NOT_FOUND = 404

Answer = Mapping[str, Any]


class Refused(exceptions.CommandError):
    """The interface refused a call.

    :ivar status: of HTTP, 400 or more.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclasses.dataclass(frozen=True)
class HostAnswers:
    """A list, as far as hosts answered.

    :ivar items: all pages, or as many as were asked for.
    :ivar partial: whether something is missing.
    :ivar not_reached: why hosts did not answer, by host; empty for those who
        may not see hosts.
    """

    items: Sequence[Answer]
    partial: bool
    not_reached: Mapping[str, str]


class FairnessApi:
    """The HTTP interface; every error is a CommandError with its reason.

    :param session: of the compute service, which knows its version.
    """

    def __init__(self, session: sdk.FairnessProxy) -> None:
        self._session = session

    @property
    def proxy(self) -> sdk.FairnessProxy:
        """The same as a service of openstacksdk."""
        return self._session

    def get(self, path: str, **query: Any) -> Answer:
        """Read something.

        :param path: below ``/fairness``, with a slash or empty.
        :param query: parameters; ``None`` leaves one out.
        """
        given = {key: value for key, value in query.items() if value}
        return self._asked('GET', path, params=given)

    def act_on(self, uuid: str, action: str, argument: Any = None) -> Answer:
        """Take a request back, start it, or let it run longer.

        :param argument: of the action.
        :returns: the request as it is then.
        """
        path = f'/requests/{quoted(uuid)}/action'
        found: Answer = _found(
            self._asked('POST', path, json={action: argument}), 'request'
        )
        return found

    def set_share(
        self, account: str, share: float | None, *, dry_run: bool = False
    ) -> Answer:
        """Set the share of an account.

        :param share: ``None`` for what the file says.
        :param dry_run: whether nothing is set, and the answer has the effect.
        """
        given = {'account': account, 'share': share}
        return self._asked('PUT', '/shares', json=given | _dry(dry_run))

    def set_limits(
        self, account: str, limits: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer:
        """Set limits of an account.

        :param limits: by name, in the form of the API; ``None`` for what
            the file says.
        :param dry_run: as of :meth:`set_share`.
        """
        given = {'account': account, **limits}
        return self._asked('PUT', '/limits', json=given | _dry(dry_run))

    def border_hosts(
        self, limit: int | None = None, marker: str | None = None
    ) -> HostAnswers:
        """Hosts that move between batch and cloud.

        :param limit: most of them; ``None`` for all.
        :param marker: name of the one before the first.
        """
        return self.pages('hosts', limit, below='/partition', marker=marker)

    def act_on_border(self, host: str, action: str) -> Answer:
        """Let a host move between batch and cloud, or stay.

        :returns: the host as it is then.
        """
        path = f'/partition/hosts/{quoted(host)}/action'
        found: Answer = _found(
            self._asked('POST', path, json={action: None}), 'host'
        )
        return found

    def set_target(self, hosts: int | None) -> Answer:
        """Say how many hosts the cloud is to have.

        :param hosts: ``None`` to go by calendar and demand.
        """
        return self._asked('PUT', '/partition', json={'target': hosts})

    def ask_for_plan(self, path: str, wanted: Mapping[str, Any]) -> Answer:
        """Propose a plan of moves, let one begin, or end it.

        :param path: of plans, or of the action of one.
        :returns: the plan as it is then.
        """
        found: Answer = _found(
            self._asked('POST', path, json=dict(wanted)), 'plan'
        )
        return found

    def set_group(self, wanted: Mapping[str, Any], *, new: bool) -> Answer:
        """Set a group with a spending rate.

        :param wanted: in the form of the API.
        :param new: whether it is to be there only from now on.
        :returns: the group as it is then; empty if it was taken away.
        """
        method = 'POST' if new else 'PUT'
        said = self._asked(method, '/groups', json=dict(wanted))
        found: Answer = _found(said, 'group') or {}
        return found

    def act(self, host: str, action: str, argument: Any = None) -> Answer:
        """Let a host, or ``all``, do something.

        :param action: such as ``set-metric``.
        :param argument: of the action.
        """
        return self._asked(
            'POST', f'/{quoted(host)}/action', json={action: argument}
        )

    def pages(
        self,
        noun: str,
        limit: int | None = None,
        below: str = '',
        **query: Any,
    ) -> HostAnswers:
        """Read a list, page by page.

        :param noun: ``hosts``, ``users``, ``projects`` or ``requests``.
        :param limit: most items; ``None`` for all.
        :param below: path before it.
        """
        items: list[Answer] = []
        partial = False
        not_reached: dict[str, str] = {}
        for answer in self._answers(noun, below, {**query, 'limit': limit}):
            items.extend(_found(answer, noun))
            partial = partial or bool(answer.get('partial'))
            not_reached |= reasons(answer.get('not_reached'))
            if limit is not None and len(items) >= limit:
                break
        return HostAnswers(items[:limit], partial, not_reached)

    def each(self, noun: str, page: int, **query: Any) -> Iterator[Answer]:
        """Read a list as far as the caller goes through it.

        :param noun: as of :meth:`pages`.
        :param page: items that are read at once.
        """
        for answer in self._answers(noun, '', {**query, 'limit': page}):
            yield from _found(answer, noun)

    def _answers(
        self, noun: str, below: str, query: Mapping[str, Any]
    ) -> Iterator[Answer]:
        """Pages of a list, up to the last one or one that is empty."""
        more: Mapping[str, Any] | None = query
        while more is not None:
            answer = self.get(f'{below}/{noun}', **more)
            yield answer
            more = _next(answer, noun) if _found(answer, noun) else None

    def one(self, noun: str, path: str) -> Answer:
        """Read one thing.

        :param noun: its key in the answer.
        """
        found: Answer = _found(self.get(path), noun)
        return found

    def _asked(self, method: str, path: str, **given: Any) -> Answer:
        response = self._session.request(
            f'/fairness{path}',
            method,
            raise_exc=False,
            headers={'Accept': 'application/json'},
            **given,
        )
        content = _content(response)
        if response.status_code >= 400:
            raise Refused(response.status_code, _fault(response, content))
        if not isinstance(content, dict):
            raise exceptions.CommandError(
                f'{response.url} answered {response.status_code} with '
                'something else than a JSON object'
            )
        return content


def _dry(dry_run: bool) -> dict[str, Any]:
    return {'dry_run': True} if dry_run else {}


def quoted(name: str) -> str:
    """Write a name as one part of a path."""
    return parse.quote(name, safe='')


def reasons(listed: Any) -> dict[str, str]:
    """Read why hosts are missing, by host."""
    return {
        str(item.get('host')): str(item.get('reason')) for item in listed or ()
    }


def _found(answer: Answer, noun: str) -> Any:
    try:
        return answer[noun]
    except KeyError:
        raise exceptions.CommandError(
            f'the answer lacks {noun!r}: this is no interface of nova-fairness'
        ) from None


def _next(answer: Answer, noun: str) -> Mapping[str, Any] | None:
    """Query of the next page, if there is one."""
    for link in answer.get(f'{noun}_links') or ():
        if link.get('rel') == 'next':
            return dict(parse.parse_qsl(parse.urlsplit(link['href']).query))
    return None


def _content(response: requests.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None


def _fault(response: requests.Response, content: Any) -> str:
    """Say in one line what was wrong, and for which request."""
    message = _message(content) or response.reason or 'no reason given'
    # Nova's own 404 has HTML in its message.
    message = ' '.join(plain.untagged(message).split())
    if response.status_code == 404 and message.startswith(_UNKNOWN_URL):
        message += (
            ' Is the filter of nova-fairness in the api-paste.ini of this '
            'cloud?'
        )
    request_id = response.headers.get('x-openstack-request-id')
    told = f' (Request-ID: {request_id})' if request_id else ''
    return plain.line(f'{message} (HTTP {response.status_code}){told}')


def _message(content: Any) -> str:
    """Find the message in a fault of Nova, of its middleware, or ours."""
    if not isinstance(content, dict):
        return ''
    for inner in (content, *content.values()):
        if isinstance(inner, dict) and isinstance(inner.get('message'), str):
            return str(inner['message'])
    return ''
