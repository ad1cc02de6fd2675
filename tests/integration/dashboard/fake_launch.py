# SPDX-License-Identifier: Apache-2.0

"""Fake Nova, Neutron and Glance for the dialog that launches servers."""

from collections.abc import Mapping
from typing import Any

import webob

ZONES = 'z1', 'z2'

_NETWORK = '/network/v2.0/'

_LIMITS = {
    'maxTotalCores': 100, 'maxTotalInstances': 100, 'maxTotalRAMSize': 100_000,
    'totalCoresUsed': 0, 'totalInstancesUsed': 0, 'totalRAMUsed': 0,
}  # fmt: skip


def _flavor(name: str, vcpus: int) -> Mapping[str, Any]:
    return {
        'id': f'id-of-{name}', 'name': name, 'vcpus': vcpus, 'ram': 100,
        'disk': 0, 'OS-FLV-EXT-DATA:ephemeral': 0, 'swap': '',
        'rxtx_factor': 1.0, 'os-flavor-access:is_public': True,
        'OS-FLV-DISABLED:disabled': False, 'links': [],
    }  # fmt: skip


def server_for_list(server: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A server with what the list of Horizon needs besides."""
    flavor = {**_flavor('small', 4), **server.get('flavor', {})}
    return {
        **server,
        'name': name,
        'flavor': {**flavor, 'original_name': 'small'},
        'image': '',
        'addresses': {},
    }


def answer(path: str) -> webob.Response | None:
    """Answer to a path below the endpoint; ``None`` if it is not known.

    The flavors are those of the fake cloud that the service looks at.
    """
    found = {
        '/flavors/detail': {
            'flavors': [_flavor('two', 2), _flavor('nine', 9)]
        },
        '/os-availability-zone': {
            'availabilityZoneInfo': [
                {'zoneName': each, 'zoneState': {'available': True}}
                for each in ZONES
            ]
        },
        # Horizon 23 asks for them one by one.
        **{
            f'/flavors/id-of-{each}/os-extra_specs': {'extra_specs': {}}
            for each in ('two', 'nine')
        },
        '/os-keypairs': {'keypairs': []},
        '/limits': {'limits': {'absolute': _LIMITS, 'rate': []}},
        '/os-server-groups': {'server_groups': []},
        '/image/v2/images': {'images': []},
        '/image/v2/metadefs/namespaces': {'namespaces': []},
        '/image/v2/schemas/image': {'name': 'image', 'properties': {}},
    }.get(path.removeprefix('/v2.1'))
    if path.startswith(_NETWORK):
        # Nothing of any kind.
        found = {path.removeprefix(_NETWORK).replace('-', '_'): []}
    return None if found is None else webob.Response(json=found)
