# SPDX-License-Identifier: Apache-2.0

"""Patterns of names, and their descriptions for messages."""

from collections.abc import Mapping

HOST = r'^[A-Za-z0-9:][A-Za-z0-9._:-]{0,254}$'
"""Name or address of a host; for some paths ``all`` stands for all hosts."""

ID = r'^[A-Za-z0-9._@:-]{1,255}$'
"""ID of a user or project; ``me`` stands for the owner of the token."""

UUID = r'^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$'

ORDER = r'^[A-Za-z0-9_.-]{1,100}$'
"""Name of an order of the queue."""

PLUGIN = r'^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,254}$'
"""Name of a metric or a policy."""

RESOURCE_CLASS = '^[A-Z0-9_]{1,255}$'
ACCOUNT = '^[^/]+(/[^/]+)?$'
GROUP = '^[^/]{1,100}$'
PROJECT = '^[^/]{1,255}$'

LINE = r'^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$'
"""Text without control characters."""

BY_PLACEHOLDER = {'host': HOST, 'id': ID, 'uuid': UUID, 'order': ORDER}
"""Patterns by the name of the placeholder in a path."""

MEANINGS: Mapping[str, str] = {
    HOST: 'name of a host',
    ID: 'ID of a user or project',
    UUID: 'UUID',
    ORDER: 'name of an order',
    PLUGIN: 'name of a metric or policy',
    RESOURCE_CLASS: 'resource class; expected capitals, digits and _, such as'
    ' VCPU or CUSTOM_GPU',
    ACCOUNT: 'account; expected PROJECT, PROJECT/USER or a name of the file',
    GROUP: 'name of a group; expected 1 to 100 characters without /',
    PROJECT: 'project; expected 1 to 255 characters without /',
    LINE: 'line of text; control characters are not allowed',
}
"""Descriptions of patterns."""
