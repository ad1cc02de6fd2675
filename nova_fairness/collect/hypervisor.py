# SPDX-License-Identifier: Apache-2.0

"""The connection to libvirt, as far as collecting needs it.

Only calls that never enter a guest's monitor are made here.
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
    """A domain that runs.

    :ivar uuid: lower case.
    :ivar name: libvirt's name of it.
    :ivar paused: its vCPUs do not run.
    :ivar read_xml: asks libvirt for its XML; raises
        :class:`exception.CollectError` when it has ended meanwhile.
    """

    uuid: str
    name: str
    paused: bool
    read_xml: Callable[[], str]


def _start_event_loop() -> None:
    """Run libvirt's event loop for the rest of this process.

    There is one per process, and it must be registered before the first
    connection is opened. It sleeps in poll(2) while nothing happens.
    """
    global _loop_runs
    with _loop_lock:
        if _loop_runs:
            return
        libvirt.registerErrorHandler(_ignore, None)
        libvirt.virEventRegisterDefaultImpl()
        threading.Thread(
            target=_run_event_loop, name='libvirt-events', daemon=True
        ).start()
        _loop_runs = True


def _run_event_loop() -> None:
    while True:
        libvirt.virEventRunDefaultImpl()


def _ignore(_context: object, _error: object) -> None:
    """Keep libvirt from writing to standard error; errors are raised."""


class Hypervisor:
    """One open connection to libvirt.

    :param uri: connection URI, such as ``qemu:///system``.
    :param changed: called when something changed, with the UUID of the domain
        if its XML has to be read again, ``None`` otherwise; from libvirt's
        event thread, so it must return at once.
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

    def active(self) -> tuple[ActiveDomain, ...]:
        """List the running domains, sorted by UUID.

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
                _xml_reader(domain),
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


def _xml_reader(domain: libvirt.virDomain) -> Callable[[], str]:
    def read() -> str:
        try:
            return str(domain.XMLDesc(0))
        except libvirt.libvirtError as error:
            raise exception.CollectError(
                f'no XML of domain {domain.name()}: {error}'
            ) from error

    return read
