# SPDX-License-Identifier: Apache-2.0

"""Schema of queries about orders of the queue."""

from api_ext.schemas import parts

QUERY = parts.record(
    {
        'parameters': {
            'type': 'string',
            'maxLength': 1000,
            'description': 'Parameters of the order, ``NAME=NUMBER,...``; '
            'other parameters have their defaults',
        }
    },
    optional=('parameters',),
)
