# SPDX-License-Identifier: Apache-2.0

"""The JSON schema of ``result.json``."""

import importlib.resources
import json
from typing import Any

FILE_NAME = 'result_schema.json'


def schema() -> dict[str, Any]:
    """Schema (draft 2020-12)."""
    text = importlib.resources.files(__package__).joinpath(FILE_NAME)
    content: dict[str, Any] = json.loads(text.read_text())
    return content
