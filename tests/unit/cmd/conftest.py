# SPDX-License-Identifier: Apache-2.0

"""What tests of commands share."""

import logging

import pytest


@pytest.fixture(autouse=True)
def log():
    """What the service sets up for its log ends with the test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
