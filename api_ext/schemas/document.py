# SPDX-License-Identifier: Apache-2.0

"""The description of the interface itself."""

SHOW = {
    'type': 'object',
    'properties': {
        'openapi': {'type': 'string'},
        'info': {'type': 'object'},
        'paths': {'type': 'object'},
    },
    'required': ['openapi', 'info', 'paths'],
}
