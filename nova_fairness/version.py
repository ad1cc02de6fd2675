# SPDX-License-Identifier: Apache-2.0

"""The version of the installed package."""

import importlib.metadata


def release() -> str:
    """Version, as the package manager knows it."""
    return importlib.metadata.version('nova-fairness')
