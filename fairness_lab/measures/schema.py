# SPDX-License-Identifier: Apache-2.0


"""The JSON schema of the simulator's ``result.json``."""

import importlib.resources
import json
from typing import Any

FILE_NAME = 'result_schema.json'
MEASURES = 'measures_schema.json'


def schema() -> dict[str, Any]:
    """Schema (draft 2020-12), that of the measures included."""
    whole = _read(FILE_NAME)
    # Its own identifier, so that what it refers to is found within it.
    whole['properties']['measures'] = {'$id': MEASURES, **_read(MEASURES)}
    return whole


def _read(name: str) -> dict[str, Any]:
    text = importlib.resources.files(__package__).joinpath(name)
    content: dict[str, Any] = json.loads(text.read_text(encoding='utf-8'))
    return content
