# SPDX-License-Identifier: Apache-2.0

"""Whether an agent shall be a service of Nova; imports nothing of Nova."""

from collections.abc import Sequence
import importlib.util
import pathlib

from nova_fairness import exception
from nova_fairness.nova_service import releases

AUTO, ON, OFF = 'auto', 'on', 'off'

_EXTRA = 'nova-fairness[nova]'


def wanted(mode: str, config_files: Sequence[str]) -> tuple[bool, str]:
    """Tell whether to be a service of Nova.

    :param mode: one of :data:`AUTO`, :data:`ON`, :data:`OFF`.
    :param config_files: of Nova.
    :returns: whether, and if not, why not.
    :raises ConfigurationError: if it must be and cannot.
    """
    if mode == OFF:
        return False, '[fairness_nova] service = off'
    missing = _missing(config_files)
    if missing and mode == ON:
        raise exception.ConfigurationError(
            f'[fairness_nova] service = on: {missing}'
        )
    return not missing, missing


def _missing(config_files: Sequence[str]) -> str:
    """Say what is missing; empty if nothing is."""
    if importlib.util.find_spec('nova') is None:
        return f'Nova is not installed here; expected {_EXTRA}'
    if fault := releases.fault():
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
