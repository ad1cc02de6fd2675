# SPDX-License-Identifier: Apache-2.0

"""Calls of Placement, Nova and Keystone, and errors for their failures."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import logging
import os
import types
from typing import Any
from typing import NamedTuple
import urllib.request

from keystoneauth1 import adapter as keystone_adapter
from keystoneauth1 import exceptions as keystone_exceptions
from openstack import exceptions as sdk_exceptions
import openstack.config

from nova_fairness import exception
from nova_fairness.runtime import outages

LOG = logging.getLogger(__name__)

UNREADABLE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""Errors that reading a malformed answer raises."""

_PLACEMENT_VERSION = '1.36'
# From 2.88 on Nova asks each host how long it is up when hosts are listed.
_NOVA_VERSION = '2.87'
# From this on it tells in which zones servers are to stay.
_NOVA_NEWER = {'/servers/': '2.96'}
_KEYSTONE_VERSION = '3'
_GLANCE_VERSION = '2'
_JSON_PATCH = 'application/openstack-images-v2.1-json-patch'
_BUNDLES = 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE'
"""Variables that name a file of certificates; the first counts."""
_NOT_FOUND = 404
_DELETED = (202, 204)
_NOT_ACCEPTABLE = 406
_SERVER_ERROR = 500
_AWAY = (502, 503, 504)
"""Answers of a proxy in front of a service that is away, and of services
whose own servers are away."""

_REDIRECTED = 300
_REFUSED = 400


@contextlib.contextmanager
def reading(what: str) -> Iterator[None]:
    """Read an answer that may be anything.

    :param what: whose answer, and about what, for people.
    :raises CloudUnreadable: if a part is missing, or is not what it should
        be.
    """
    try:
        yield
    except UNREADABLE as error:
        raise unreadable(what, error) from error


def unreadable(what: str, error: Exception) -> exception.CloudUnreadable:
    """The error of an answer that is not what it should be."""
    return exception.CloudUnreadable(f'{what} cannot be read: {error!r}')


class Tolerance:
    """Tells an object for which a service fails from a service that is away.

    Many are asked for one by one. While the service answers for most of them,
    those for which it fails are left out.
    """

    MOST = 20
    """Objects for which it may fail: each may take until a timeout."""

    def __init__(self) -> None:
        self._failed: list[exception.CloudError] = []

    def note(self, error: Exception) -> None:
        """Take note of a failure; an answer that cannot be read is none.

        :raises CloudError: the failure, if there were too many.
        """
        if isinstance(error, exception.CloudUnreadable) or not isinstance(
            error, exception.CloudError
        ):
            return
        self._failed.append(error)
        if len(self._failed) > self.MOST:
            raise error

    def judge(self, count: int) -> None:
        """Say that all were asked for.

        :param count: number of objects.
        :raises CloudError: the last failure, if most failed.
        """
        if 2 * len(self._failed) > count:
            raise self._failed[-1]


class Api:
    """One service of the cloud.

    :param adapter: of keystoneauth.
    :param service: its type, for the microversion.
    :param version: microversion.
    :param newer: newer microversions, by the beginning of the paths that are
        read with them, where the service knows them.

    :ivar before: called before each call; an error that it raises is raised.
    """

    def __init__(
        self,
        adapter: Any,
        service: str,
        version: str,
        newer: Mapping[str, str] = types.MappingProxyType({}),
    ) -> None:
        self._adapter = adapter
        self._service = service
        self._version = version
        self._newer = newer
        self.before: Callable[[], None] = lambda: None

    def get(
        self, path: str, secret: Mapping[str, str] | None = None
    ) -> Mapping[str, Any] | None:
        """Read; ``None`` if it is not there.

        :param secret: headers; then neither they nor the answer are logged.
        :raises CloudAway: if it is not known.
        :raises CloudRefused: if it was refused.
        """
        answer = self._read(path, secret)
        if answer.status_code == _NOT_FOUND:
            return None
        try:
            found = answer.json()
        except exception.UNREADABLE:
            found = None
        if not isinstance(found, dict):
            raise exception.CloudUnreadable(
                f'the answer of {self._service} cannot be read'
            )
        return found

    def put(self, path: str, body: Mapping[str, Any]) -> None:
        """Write.

        :raises CloudAway: if it is not known whether it was written.
        :raises CloudRefused: if it was not.
        """
        if self._ask('PUT', path, body).status_code == _NOT_FOUND:
            raise exception.CloudRefused(f'{self._service} knows no {path}')

    def post(self, path: str, body: Mapping[str, Any]) -> None:
        """Ask for something.

        :raises CloudAway: if it is not known whether it will be done.
        :raises CloudRefused: if it will not.
        """
        if self._ask('POST', path, body).status_code == _NOT_FOUND:
            raise exception.CloudRefused(f'{self._service} knows no {path}')

    def patch(self, path: str, changes: Sequence[Mapping[str, Any]]) -> None:
        """Change something, in the way of Glance.

        :param changes: of JSON patch.
        :raises CloudAway: if it is not known whether it was changed.
        :raises CloudRefused: if it was not.
        """
        headers = {'Content-Type': _JSON_PATCH}
        answer = self._ask('PATCH', path, changes, headers)
        if answer.status_code == _NOT_FOUND:
            raise exception.CloudRefused(f'{self._service} knows no {path}')

    def delete(self, path: str) -> bool:
        """Delete; nothing happens if it is not there.

        :returns: whether it was there.
        :raises CloudAway: if it is not known whether it was deleted.
        :raises CloudRefused: if it was not.
        """
        code = self._ask('DELETE', path).status_code
        if code not in _DELETED and code != _NOT_FOUND:
            # Another program than the service answered.
            raise exception.CloudAway(
                f'{self._service} answers {code} to DELETE, which says neither'
                ' that it is deleted nor that it is not there'
            )
        return bool(code != _NOT_FOUND)

    def _read(self, path: str, secret: Mapping[str, str] | None) -> Any:
        newer = self._newer
        version = next(
            (newer[each] for each in newer if path.startswith(each)), ''
        )
        if not version:
            return self._ask('GET', path, secret=secret)
        answer = self._ask('GET', path, secret=secret, version=version)
        if answer.status_code == _NOT_ACCEPTABLE:
            self._newer = {}
            return self._ask('GET', path, secret=secret)
        return answer

    def _note(self, code: int) -> None:
        if code in _AWAY:
            outages.SERVERS.lost(self._service, f'it answers {code}')
        else:
            outages.SERVERS.restored(self._service)

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        secret: Mapping[str, str] | None = None,
        version: str = '',
    ) -> Any:
        """Ask for an answer that is no refusal.

        :param version: microversion, which may be refused; '' for the usual.
        """
        self.before()
        spoken = f'{self._service} {version or self._version}'
        headers = {'OpenStack-API-Version': spoken, **(secret or {})}
        try:
            answer = self._adapter.request(
                path,
                method,
                json=body,
                headers=headers,
                raise_exc=False,
                log=not secret,
            )
        except (
            keystone_exceptions.ClientException,
            sdk_exceptions.SDKException,
        ) as error:
            outages.SERVERS.lost(self._service, type(error).__name__)
            raise exception.CloudAway(
                f'{self._service} does not answer: {type(error).__name__}'
            ) from error
        code = answer.status_code
        self._note(code)
        # keystoneauth follows redirections; one that is left did nothing.
        if code >= _SERVER_ERROR or _REDIRECTED <= code < _REFUSED:
            failed = code == _SERVER_ERROR
            raise (exception.CloudFailed if failed else exception.CloudAway)(
                f'{self._service} answers {code}'
            )
        if version and code == _NOT_ACCEPTABLE:
            return answer
        if code >= _REFUSED and code != _NOT_FOUND:
            raise exception.CloudRefused(
                f'{self._service} refused {method} {path.partition("?")[0]}:'
                f' {code}',
                _said(answer),
            )
        return answer


def _said(answer: Any) -> str:
    """Message of Keystone about a refusal; '' if it is not of its form."""
    try:
        return str(answer.json()['error']['message'])
    except (LookupError, TypeError, ValueError):
        return ''


def placement(adapter: Any) -> Api:
    """Placement, through an adapter of keystoneauth."""
    return Api(adapter, 'placement', _PLACEMENT_VERSION)


def nova(adapter: Any) -> Api:
    """Nova, through an adapter of keystoneauth."""
    return Api(adapter, 'compute', _NOVA_VERSION, _NOVA_NEWER)


def keystone(adapter: Any) -> Api:
    """Keystone, through an adapter of keystoneauth."""
    return Api(adapter, 'identity', _KEYSTONE_VERSION)


def glance(adapter: Any) -> Api:
    """Glance, through an adapter of keystoneauth."""
    return Api(adapter, 'image', _GLANCE_VERSION)


class CloudClients(NamedTuple):
    """The services of a cloud that are asked."""

    placement: Api
    nova: Api
    keystone: Api
    glance: Api


def connect(cloud: str, region: str = '') -> CloudClients:
    """The services of a cloud in ``clouds.yaml``, for an administrator.

    :param cloud: its name; '' takes what the environment names.
    :param region: of the cloud; '' takes its only one, or its first.
    :raises ConfigurationError: if it is not described well.
    """
    try:
        chosen: Any = {'region_name': region} if region else {}
        config = openstack.config.get_cloud_region(
            cloud=cloud or None, **chosen
        )
        LOG.info(
            'Cloud %s: region %s is asked; [fairness_cluster] region_name '
            'names another one',
            config.name or cloud or 'of the environment',
            config.region_name or 'of the catalog',
        )
        return CloudClients(
            placement(_adapter(config, 'placement')),
            nova(_adapter(config, 'compute')),
            # These addresses in the catalog may lack the version.
            keystone(_adapter(config, 'identity', min_version='3')),
            glance(_adapter(config, 'image', min_version='2')),
        )
    except (
        keystone_exceptions.ClientException,
        sdk_exceptions.SDKException,
    ) as error:
        raise exception.ConfigurationError(
            f'cloud {cloud or "of the environment"}: {error}'
        ) from error


def environment_read_once(session: Any) -> Any:
    """A session that reads the environment now, and not at each call.

    For proxies and certificates requests looks through all of it each time,
    which takes as long as the call itself. Where it names proxies it is left
    so: which of them counts depends on the address.

    :param session: of keystoneauth.
    """
    bundles = [os.environ.get(each) for each in _BUNDLES]
    if session.verify is True:
        session.verify = next(filter(None, bundles), True)
    session.session.trust_env = bool(urllib.request.getproxies())
    return session


def _adapter(config: Any, service: str, **more: Any) -> Any:
    """An adapter that outlives its connection; the SDK's own does not."""
    return keystone_adapter.Adapter(
        environment_read_once(config.get_session()),
        service_type=config.get_service_type(service),
        interface=config.get_interface(service),
        region_name=config.get_region_name(service),
        endpoint_override=config.get_endpoint(service),
        **more,
    )
