# SPDX-License-Identifier: Apache-2.0

"""Schemas of the usage and weights of an instance."""

from api_ext.schemas import parts

ITEM = parts.record(
    {
        'uuid': parts.TEXT,
        'name': parts.TEXT,
        'user_id': parts.TEXT,
        'project_id': parts.TEXT,
        'user_name': parts.TEXT,
        'project_name': parts.TEXT,
        'summary': parts.TEXT,
        'entity': parts.TEXT,
        'metric': parts.TEXT,
        'policy': parts.TEXT,
        'enforced': parts.BOOLEAN,
        'heaviness': {
            'type': 'object',
            'properties': {
                'total': parts.MAYBE_NUMBER,
                'additive': {'type': ['boolean', 'null']},
                'by_resource': parts.MAYBE_NUMBER_MAP,
                'elsewhere': parts.MAYBE_NUMBER,
                # Agents of an older release do not send these.
                'shadow': parts.describe(
                    parts.MAYBE_NUMBER,
                    'Heaviness by the shadow metric, which changes no weight',
                ),
                'shadow_metric': parts.describe(
                    parts.TEXT,
                    'Name of the shadow metric; empty if there is none',
                ),
            },
        },
        'endowment': parts.MAYBE_NUMBER_MAP,
        'quota': parts.MAYBE_NUMBER_MAP,
        'usage': parts.MAYBE_NUMBER_MAP,
        'owner_usage': parts.MAYBE_NUMBER_MAP,
        'waiting': parts.TEXTS,
        'contended': parts.TEXTS,
        'weights': parts.MAYBE_NUMBER_MAP,
        'weights_last_hour': {
            'type': 'array',
            'items': parts.record(
                {'at': parts.TEXT, 'weights': parts.MAYBE_NUMBER_MAP}
            ),
        },
        'advice': parts.TEXTS,
        'host': parts.TEXT,
        'request_id': parts.TEXT,
        'standing': parts.TEXT,
    },
    # Agents of an older release do not send these.
    optional=(
        *('host', 'user_name', 'project_name', 'summary'),
        # Only for instances that the cluster service knows.
        *('request_id', 'standing'),
    ),
)
"""Fields of an instance. Callers see no other field of an agent's answer."""

SHOW = parts.record({'instance': ITEM})
