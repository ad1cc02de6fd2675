# SPDX-License-Identifier: Apache-2.0

"""Schema of faults, in Nova's form."""

from api_ext.schemas import parts


def body(code: int, key: str) -> parts.Schema:
    """Schema of the body of a fault."""
    return parts.record(
        {key: parts.record({'code': {'const': code}, 'message': parts.TEXT})}
    )
