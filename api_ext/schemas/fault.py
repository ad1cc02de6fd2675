# SPDX-License-Identifier: Apache-2.0

"""Schema of faults, in Nova's form."""

from api_ext.schemas import parts


def body_schema(code: int, key: str) -> parts.Schema:
    """Return the schema of the body of a fault."""
    return parts.record(
        {key: parts.record({'code': {'const': code}, 'message': parts.TEXT})}
    )
