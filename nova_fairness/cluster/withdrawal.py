# SPDX-License-Identifier: Apache-2.0

"""Removal of everything that the cluster service wrote into Nova and the
batch system.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
import functools
from typing import Any

from nova_fairness import exception
from nova_fairness.batch import system
from nova_fairness.cluster.eviction import notice_channels
from nova_fairness.cluster.move_plans import plan_executor
from nova_fairness.cluster.openstack import clients
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.openstack import paging

WRITTEN = (
    *notice_channels.KEYS,
    plan_executor.MOVED,
    plan_executor.MOVING,
    nova_module.TTL_OURS,
)
"""Metadata keys of servers that only this product writes. Owners write
other keys that begin with ``fairness:``.
"""

_FAULTS = exception.CloudError, exception.BatchError

_Removable = tuple[str, Callable[[], None]]
"""Sentence about a thing to remove, and the function that removes it."""


class Withdrawal:
    """Opens hosts that the service closed, and removes its metadata, one thing
    at a time.

    Hosts that were closed for another reason stay closed, and metadata of
    owners is not changed. A second removal finds nothing.

    :param api: API of Nova.
    :param batch: batch system whose drained nodes are opened; ``None`` if
        there is none.
    :param tell: called with a sentence for each thing that was removed.
    """

    def __init__(
        self,
        api: clients.Api,
        batch: system.BatchSystem | None,
        tell: Callable[[str], None],
    ) -> None:
        self._api = api
        self._nova = nova_module.Nova(api)
        self._batch = batch
        self._tell = tell

    def remove(self) -> list[str]:
        """Remove everything that can be removed.

        :returns: a sentence for each thing that could not be removed, and for
            each kind of thing that could not be searched.
        """
        left: list[str] = []
        for kind, look in (
            ('hosts of Nova', self._disabled_hosts),
            ('nodes of the batch system', self._drained_nodes),
            ('metadata of servers', self._metadata_of_servers),
        ):
            try:
                for thing, remove in look():
                    left += self._try_to_remove(thing, remove)
            except _FAULTS as error:
                left.append(f'{kind}: not looked for: {error}')
        return left

    def _try_to_remove(
        self, thing: str, remove: Callable[[], None]
    ) -> list[str]:
        """Remove one thing. Returns a sentence if that failed."""
        try:
            remove()
        except _FAULTS as error:
            return [f'{thing}: not removed: {error}']
        self._tell(thing)
        return []

    def _metadata_of_servers(self) -> Iterator[_Removable]:
        path = '/servers/detail?all_tenants=1'
        for server in paging.list_all_pages(self._api, path, 'servers'):
            yield from self._written_metadata(server)

    def _disabled_hosts(self) -> Iterator[_Removable]:
        for host, service in sorted(self._nova.services().items()):
            if service.is_disabled_by_product:
                yield (
                    f'host {host}: enabled, was: {service.reason}',
                    functools.partial(self._nova.enable, service),
                )

    def _drained_nodes(self) -> Iterator[_Removable]:
        if self._batch is None:
            return
        for host, place in sorted(self._batch.read_hosts().places.items()):
            if place.ours:
                yield (
                    f'node {host}: undrained, was: {place.reason}',
                    functools.partial(self._batch.undrain, host),
                )

    def _written_metadata(
        self, server: Mapping[str, Any]
    ) -> Iterator[_Removable]:
        uuid, has = server['id'], server.get('metadata') or {}
        keys = [key for key in WRITTEN if key in has]
        ours = has.get(nova_module.TTL_OURS)
        if ours is not None and has.get(nova_module.TTL) == ours:
            keys.insert(0, nova_module.TTL)
        for key in keys:
            yield (
                f'server {server.get("name")} ({uuid}): {key} removed',
                functools.partial(self._nova.delete_metadata, uuid, key),
            )
