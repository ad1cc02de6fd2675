# SPDX-License-Identifier: Apache-2.0

"""Schema of the OpenAPI document."""

SHOW = {
    'type': 'object',
    'properties': {
        'openapi': {'type': 'string'},
        'info': {'type': 'object'},
        'paths': {'type': 'object'},
    },
    'required': ['openapi', 'info', 'paths'],
}
