# SPDX-License-Identifier: Apache-2.0

"""Faults, as Nova writes them."""

from api_ext.schemas import parts


def body(code: int, key: str) -> parts.Schema:
    """Describe the body of one fault."""
    return parts.record(
        {key: parts.record({'code': {'const': code}, 'message': parts.TEXT})}
    )
