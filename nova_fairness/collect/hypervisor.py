# SPDX-License-Identifier: Apache-2.0

"""The connection to libvirt for reading VMs.

It makes only calls that never enter a guest's monitor.
"""

from collections.abc import Callable
import contextlib
import dataclasses
import threading

import libvirt

from nova_fairness import exception

_KEEPALIVE_S = 5
_KEEPALIVES_LOST = 3
_XML_EVENTS = (
    libvirt.VIR_DOMAIN_EVENT_ID_DEVICE_ADDED,
    libvirt.VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED,
    libvirt.VIR_DOMAIN_EVENT_ID_METADATA_CHANGE,
)
_loop_lock = threading.Lock()
_loop_runs = False


@dataclasses.dataclass(frozen=True, slots=True)
class ActiveDomain:
    """A running domain.

    :ivar uuid: lower case.
    :ivar name: of the domain in libvirt.
    :ivar paused: whether its vCPUs are paused.
    :ivar read_xml: returns its XML from libvirt; raises
        :class:`exception.CollectError` if the domain ended meanwhile.
    """

    uuid: str
    name: str
    paused: bool
    read_xml: Callable[[], str]


def _start_event_loop() -> None:
    """Start libvirt's event loop for the rest of this process.

    A process has one loop, which must be registered before the first
    connection is opened. It sleeps in poll(2) without events.
    """
    global _loop_runs
    with _loop_lock:
        if _loop_runs:
            return
        libvirt.registerErrorHandler(_ignore_error, None)
        libvirt.virEventRegisterDefaultImpl()
        threading.Thread(
            target=_run_event_loop, name='libvirt-events', daemon=True
        ).start()
        _loop_runs = True


def _run_event_loop() -> None:
    while True:
        libvirt.virEventRunDefaultImpl()


def _ignore_error(_context: object, _error: object) -> None:
    """Ignore an error, so that libvirt does not print it; it is raised,
    too.
    """


class Hypervisor:
    """An open connection to libvirt.

    :param uri: connection URI, such as ``qemu:///system``.
    :param changed: called from libvirt's event thread after a change, so it
        must return at once; with the UUID of the domain whose XML must be read
        again, else ``None``.
    :raises exception.HypervisorUnavailable: if libvirt does not answer.
    """

    def __init__(
        self, uri: str, changed: Callable[[str | None], None]
    ) -> None:
        _start_event_loop()
        self._uri = uri
        self._changed = changed
        self._callbacks: list[int] = []
        try:
            self._connection = libvirt.openReadOnly(uri)
        except libvirt.libvirtError as error:
            raise self._unavailable(error) from error
        try:
            self._subscribe()
        except libvirt.libvirtError as error:
            self.close()
            raise self._unavailable(error) from error

    def _unavailable(
        self, error: libvirt.libvirtError
    ) -> exception.HypervisorUnavailable:
        return exception.HypervisorUnavailable(
            f'libvirt at {self._uri} does not answer: {error}'
        )

    def _subscribe(self) -> None:
        self._connection.registerCloseCallback(self._on_change, None)
        # In-process drivers have no socket that could need it.
        with contextlib.suppress(libvirt.libvirtError):
            self._connection.setKeepAlive(_KEEPALIVE_S, _KEEPALIVES_LOST)
        lifecycle = libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE
        self._register(lifecycle, self._on_change)
        for event in _XML_EVENTS:
            # Not every driver knows these; reconciliation covers the rest.
            with contextlib.suppress(libvirt.libvirtError):
                self._register(event, self._on_new_xml)

    def _register(self, event: int, callback: Callable[..., None]) -> None:
        self._callbacks.append(
            self._connection.domainEventRegisterAny(
                None, event, callback, None
            )
        )

    def _on_new_xml(
        self, _connection: object, domain: libvirt.virDomain, *_details: object
    ) -> None:
        self._changed(domain.UUIDString().lower())

    def _on_change(self, *_details: object) -> None:
        self._changed(None)

    def list_running(self) -> tuple[ActiveDomain, ...]:
        """Return the running domains, sorted by UUID.

        :raises exception.HypervisorUnavailable: if libvirt does not answer.
        """
        running = libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE
        only_paused = running | libvirt.VIR_CONNECT_LIST_DOMAINS_PAUSED
        try:
            domains = self._connection.listAllDomains(running)
            paused = self._connection.listAllDomains(only_paused)
        except libvirt.libvirtError as error:
            raise self._unavailable(error) from error
        sleeping = {domain.UUID() for domain in paused}
        found = (
            ActiveDomain(
                domain.UUIDString().lower(),
                domain.name(),
                domain.UUID() in sleeping,
                _make_xml_reader(domain),
            )
            for domain in domains
        )
        return tuple(sorted(found, key=lambda item: item.uuid))

    def close(self) -> None:
        """Close the connection; never raises."""
        for callback in self._callbacks:
            with contextlib.suppress(libvirt.libvirtError):
                self._connection.domainEventDeregisterAny(callback)
        self._callbacks.clear()
        with contextlib.suppress(libvirt.libvirtError):
            self._connection.unregisterCloseCallback()
        with contextlib.suppress(libvirt.libvirtError):
            self._connection.close()


def _make_xml_reader(domain: libvirt.virDomain) -> Callable[[], str]:
    def read() -> str:
        try:
            return str(domain.XMLDesc(0))
        except libvirt.libvirtError as error:
            raise exception.CollectError(
                f'domain {domain.name()}: its XML cannot be read: {error}'
            ) from error

    return read
