# SPDX-License-Identifier: Apache-2.0

"""Schemas of installed metrics and policies."""

from api_ext.schemas import parts

_PLUGIN = parts.record(
    {
        'name': parts.TEXT,
        'description': parts.TEXT,
        'in_force': parts.BOOLEAN,
        'hosts_without': parts.TEXTS,
    },
    optional=('hosts_without',),
)

LIST = parts.record(
    {
        'metrics': parts.records({'metric': _PLUGIN}),
        'policies': parts.records({'policy': _PLUGIN}),
        **parts.PARTIAL,
    },
    optional=tuple(parts.PARTIAL),
)
