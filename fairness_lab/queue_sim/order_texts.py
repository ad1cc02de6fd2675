# SPDX-License-Identifier: Apache-2.0

"""Orders and victims by name and parameters, as command lines name them.

A text is the name of a plugin, then a colon and ``PARAMETER=NUMBER`` for each
parameter without its default: ``fair_tree:charge=0``.
"""

from collections.abc import Callable
from collections.abc import Mapping
from typing import TypeVar

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.planners.fairqueue import order as order_module
from nova_fairness.planners.preemption import victims as victims_module

_Plugin = TypeVar('_Plugin')


def load_order(text: str) -> order_module.Order:
    """Load an order.

    :param text: such as ``fass`` or ``fass:published=1``.
    :raises UnknownPlugin: if no such order is installed.
    :raises UnknownParameter: if a parameter does not exist, or its number is
        out of range.
    """
    return _load_with_parameters(plugins.load_order, text)


def load_victims(text: str) -> victims_module.Victims:
    """Load a rule that chooses victims; see :func:`load_order`.

    :param text: such as ``least`` or ``chance:seed=2``.
    """
    return _load_with_parameters(plugins.load_victims, text)


def _load_with_parameters(
    load: Callable[[str, Mapping[str, float]], _Plugin], text: str
) -> _Plugin:
    name, *settings = text.split(':')
    parameters = dict(_parameter(text, each) for each in settings)
    try:
        return load(name, parameters)
    except exception.UnknownPlugin:
        raise
    except exception.PluginError as error:
        if parameters:
            raise exception.UnknownParameter(str(error)) from error
        raise


def _parameter(text: str, setting: str) -> tuple[str, float]:
    name, _, number = setting.partition('=')
    try:
        return name, float(number)
    except ValueError:
        raise exception.UnknownParameter(
            f'{text}: expected NAME:PARAMETER=NUMBER, such as'
            f' fair_tree:charge=0, got {setting!r}'
        ) from None
