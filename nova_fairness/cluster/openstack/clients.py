# SPDX-License-Identifier: Apache-2.0

"""HTTP clients of Placement, Nova, Keystone and Glance, and errors of their
calls.
"""

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
# Since 2.88 a list of hosts makes Nova ask each host for its uptime.
_NOVA_VERSION = '2.87'
# Since this version Nova shows the zones that servers are pinned to.
_NOVA_NEWER = {'/servers/': '2.96'}
_KEYSTONE_VERSION = '3'
_GLANCE_VERSION = '2'
_JSON_PATCH = 'application/openstack-images-v2.1-json-patch'
_BUNDLES = 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE'
"""Environment variables with the name of a certificate file; the first one
that is set counts.
"""
_NOT_FOUND = 404
_DELETED = (202, 204)
_NOT_ACCEPTABLE = 406
_SERVER_ERROR = 500
_AWAY = (502, 503, 504)
"""HTTP codes of a proxy in front of a stopped service, or of a service whose
own servers do not answer.
"""

_REDIRECTED = 300
_REFUSED = 400


@contextlib.contextmanager
def parsing(answer_name: str) -> Iterator[None]:
    """Translate errors of parsing an answer.

    :param answer_name: name of the answer, for the error.
    :raises CloudUnreadable: if a part of the answer is missing or malformed.
    """
    try:
        yield
    except UNREADABLE as error:
        raise unreadable_error(answer_name, error) from error


def unreadable_error(
    answer_name: str, error: Exception
) -> exception.CloudUnreadable:
    """Return the error for a malformed answer."""
    return exception.CloudUnreadable(
        f'{answer_name} cannot be read: {error!r}'
    )


class FailureTolerance:
    """Distinguishes a service that fails for single objects from one that is
    down.

    Objects are read one by one. While the service answers for most objects,
    the objects for which it fails are skipped.
    """

    MOST = 20
    """Largest number of failures: each may take until a timeout."""

    def __init__(self) -> None:
        self._failed: list[exception.CloudError] = []

    def record(self, error: Exception) -> None:
        """Record a failure; unreadable answers do not count.

        :raises CloudError: the failure, if there are too many.
        """
        if isinstance(error, exception.CloudUnreadable) or not isinstance(
            error, exception.CloudError
        ):
            return
        self._failed.append(error)
        if len(self._failed) > self.MOST:
            raise error

    def check_failure_rate(self, object_count: int) -> None:
        """Check, after all objects were read, that most reads succeeded.

        :param object_count: number of objects.
        :raises CloudError: the last failure, if most objects failed.
        """
        if 2 * len(self._failed) > object_count:
            raise self._failed[-1]


class Api:
    """Client of one service of the cloud.

    :param adapter: adapter of keystoneauth.
    :param service: type of the service, for the microversion.
    :param version: microversion.
    :param newer: newer microversions by path prefix, used if the service
        supports them.
    :ivar before: called before each call; its errors propagate.
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
        """Read a resource; return ``None`` if it does not exist.

        :param secret: headers; with them, neither headers nor answer are
            logged.
        :raises CloudAway: if the service does not answer.
        :raises CloudRefused: if the service refuses the call.
        """
        answer = self._get_newer_version(path, secret)
        if answer.status_code == _NOT_FOUND:
            return None
        try:
            found = answer.json()
        except exception.UNREADABLE:
            found = None
        if not isinstance(found, dict):
            raise exception.CloudUnreadable(
                f'{self._service}: its answer to GET {path} is no JSON object'
            )
        return found

    def put(self, path: str, body: Mapping[str, Any]) -> None:
        """Write a resource.

        :raises CloudAway: if it is unknown whether the resource was written.
        :raises CloudRefused: if the resource was not written.
        """
        if self._call('PUT', path, body).status_code == _NOT_FOUND:
            raise exception.CloudRefused(f'{self._service} knows no {path}')

    def post(self, path: str, body: Mapping[str, Any]) -> None:
        """Send a POST request.

        :raises CloudAway: if it is unknown whether the service accepted the
            request.
        :raises CloudRefused: if the service refused the request.
        """
        if self._call('POST', path, body).status_code == _NOT_FOUND:
            raise exception.CloudRefused(f'{self._service} knows no {path}')

    def patch(self, path: str, changes: Sequence[Mapping[str, Any]]) -> None:
        """Change a resource by JSON patch, in the form that Glance needs.

        :param changes: operations of JSON patch.
        :raises CloudAway: if it is unknown whether the resource was changed.
        :raises CloudRefused: if the resource was not changed.
        """
        headers = {'Content-Type': _JSON_PATCH}
        answer = self._call('PATCH', path, changes, headers)
        if answer.status_code == _NOT_FOUND:
            raise exception.CloudRefused(f'{self._service} knows no {path}')

    def delete(self, path: str) -> bool:
        """Delete a resource, if it exists.

        :returns: whether the resource existed.
        :raises CloudAway: if it is unknown whether the resource was deleted.
        :raises CloudRefused: if the resource was not deleted.
        """
        code = self._call('DELETE', path).status_code
        if code not in _DELETED and code != _NOT_FOUND:
            # Such an answer does not come from the service.
            raise exception.CloudAway(
                f'{self._service} answers {code} to DELETE {path}: it is'
                ' unknown whether the object was deleted'
            )
        return bool(code != _NOT_FOUND)

    def _get_newer_version(
        self, path: str, secret: Mapping[str, str] | None
    ) -> Any:
        """Send GET with a newer microversion, if the path has one and the
        service supports it.
        """
        newer = self._newer
        version = next(
            (newer[each] for each in newer if path.startswith(each)), ''
        )
        if not version:
            return self._call('GET', path, secret=secret)
        answer = self._call('GET', path, secret=secret, version=version)
        if answer.status_code == _NOT_ACCEPTABLE:
            self._newer = {}
            return self._call('GET', path, secret=secret)
        return answer

    def _record_availability(self, code: int) -> None:
        """Record whether an HTTP code shows that the service is down."""
        if code in _AWAY:
            outages.SERVERS.lost(self._service, f'it answers {code}')
        else:
            outages.SERVERS.restored(self._service)

    def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        secret: Mapping[str, str] | None = None,
        version: str = '',
    ) -> Any:
        """Send an HTTP request, and check the code of its answer.

        :param version: newer microversion, which the service may refuse; ''
            for the usual one.
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
        self._record_availability(code)
        # keystoneauth follows redirections; a remaining one had no effect.
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
                _refusal_text(answer),
            )
        return answer


def _refusal_text(answer: Any) -> str:
    """Return Keystone's message about a refused call; '' if the answer has
    another form.
    """
    try:
        return str(answer.json()['error']['message'])
    except (LookupError, TypeError, ValueError):
        return ''


def placement_api(adapter: Any) -> Api:
    """Return a client of Placement."""
    return Api(adapter, 'placement', _PLACEMENT_VERSION)


def nova_api(adapter: Any) -> Api:
    """Return a client of Nova."""
    return Api(adapter, 'compute', _NOVA_VERSION, _NOVA_NEWER)


def keystone_api(adapter: Any) -> Api:
    """Return a client of Keystone."""
    return Api(adapter, 'identity', _KEYSTONE_VERSION)


def glance_api(adapter: Any) -> Api:
    """Return a client of Glance."""
    return Api(adapter, 'image', _GLANCE_VERSION)


class CloudClients(NamedTuple):
    """Clients of the services of a cloud."""

    placement: Api
    nova: Api
    keystone: Api
    glance: Api


def connect(cloud: str, region: str = '') -> CloudClients:
    """Return clients of a cloud in ``clouds.yaml``, with the rights of an
    administrator.

    :param cloud: name of the cloud; '' for the name in the environment.
    :param region: region of the cloud; '' for its first region.
    :raises ConfigurationError: if the description of the cloud is not valid.
    """
    try:
        chosen: Any = {'region_name': region} if region else {}
        config = openstack.config.get_cloud_region(
            cloud=cloud or None, **chosen
        )
        LOG.info(
            'cloud %s: this service uses the region %s; another region can be'
            ' set in [fairness_cluster] region_name',
            config.name or cloud or 'of the environment',
            config.region_name or 'of the catalog',
        )
        return CloudClients(
            placement_api(_service_adapter(config, 'placement')),
            nova_api(_service_adapter(config, 'compute')),
            # Catalog addresses of these services may lack the version.
            keystone_api(
                _service_adapter(config, 'identity', min_version='3')
            ),
            glance_api(_service_adapter(config, 'image', min_version='2')),
        )
    except (
        keystone_exceptions.ClientException,
        sdk_exceptions.SDKException,
    ) as error:
        raise exception.ConfigurationError(
            f'cloud {cloud or "of the environment"}: {error}'
        ) from error


def with_cached_environment(session: Any) -> Any:
    """Make a session read the environment now, and not at each call.

    requests searches the whole environment for proxies and certificates at
    each call, which takes as long as the call itself. If the environment names
    proxies, that search continues, because the proxy depends on the address.

    :param session: session of keystoneauth.
    :returns: the same session.
    """
    bundles = [os.environ.get(each) for each in _BUNDLES]
    if session.verify is True:
        session.verify = next(filter(None, bundles), True)
    session.session.trust_env = bool(urllib.request.getproxies())
    return session


def _service_adapter(config: Any, service: str, **adapter_options: Any) -> Any:
    """Return an adapter of a service that remains usable after a lost
    connection; the adapter of the SDK does not.
    """
    return keystone_adapter.Adapter(
        with_cached_environment(config.get_session()),
        service_type=config.get_service_type(service),
        interface=config.get_interface(service),
        region_name=config.get_region_name(service),
        endpoint_override=config.get_endpoint(service),
        **adapter_options,
    )
