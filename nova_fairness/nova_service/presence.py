# SPDX-License-Identifier: Apache-2.0

"""Decides whether an agent registers as a service of Nova, without
importing Nova.
"""

from collections.abc import Sequence
import importlib.util
import pathlib

from nova_fairness import exception
from nova_fairness.nova_service import releases

AUTO, ON, OFF = 'auto', 'on', 'off'

_EXTRA = 'nova-fairness[nova]'


def should_register(
    mode: str, config_files: Sequence[str]
) -> tuple[bool, str]:
    """Return whether to register as a service of Nova, and why not.

    :param mode: one of :data:`AUTO`, :data:`ON`, :data:`OFF`.
    :param config_files: of Nova.
    :returns: the decision, and the cause if it is negative.
    :raises ConfigurationError: if it is required and impossible.
    """
    if mode == OFF:
        return False, '[fairness_nova] service = off'
    missing = _missing_requirement(config_files)
    if missing and mode == ON:
        raise exception.ConfigurationError(
            f'[fairness_nova] service = on: {missing}'
        )
    return not missing, missing


def _missing_requirement(config_files: Sequence[str]) -> str:
    """Return what is missing for a service of Nova; empty if nothing is."""
    if importlib.util.find_spec('nova') is None:
        return f'Nova is not installed here; expected {_EXTRA}'
    if fault := releases.unsupported_release():
        return fault
    if not config_files:
        return 'config_files names no file; expected those of nova-compute'
    for name in config_files:
        try:
            with pathlib.Path(name).open('rb'):
                pass
        except OSError as error:
            return f'{name}: {error.strerror}; expected a file of Nova'
    return ''
