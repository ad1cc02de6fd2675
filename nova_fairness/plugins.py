# SPDX-License-Identifier: Apache-2.0

"""Loads plugins by name; no other module uses stevedore.

A plugin is a class with an entry point in the group ``nova_fairness.metrics``,
``nova_fairness.policies``, ``nova_fairness.orders``, ``nova_fairness.victims``
or ``nova_fairness.batch``. Configuration and HTTP calls use the name of the
entry point.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import inspect
import types
from typing import Any
from typing import Generic
from typing import TypeVar

from stevedore import extension
from stevedore import named

from nova_fairness import exception
from nova_fairness.batch import system
from nova_fairness.decide import policy
from nova_fairness.measure import metric
from nova_fairness.model import pairing
from nova_fairness.planners.fairqueue import order
from nova_fairness.planners.preemption import victims

METRICS = 'nova_fairness.metrics'
POLICIES = 'nova_fairness.policies'
ORDERS = 'nova_fairness.orders'
VICTIMS = 'nova_fairness.victims'
BATCH = 'nova_fairness.batch'

_Base = TypeVar(
    '_Base',
    metric.Metric,
    policy.Policy,
    order.Order,
    victims.Victims,
    system.BatchSystem,
)


@dataclasses.dataclass(frozen=True, slots=True)
class _PluginKind(Generic[_Base]):
    """A kind of plugin: its noun in messages, entry point group and base
    class.

    :ivar pairing: attribute that names what it can be combined with; empty if
        it has none.
    :ivar is_pairing: checks the value of that attribute.
    """

    noun: str
    namespace: str
    base: type[_Base]
    pairing: str = ''
    is_pairing: Callable[[object], bool] = bool


_NO_PARAMETERS: Mapping[str, float] = types.MappingProxyType({})

# mypy takes an abstract class for one that somebody is about to create.
_METRIC = _PluginKind(
    'metric',
    METRICS,
    metric.Metric,  # type: ignore[type-abstract]
    'suits',
    pairing.are_kinds,
)
_POLICY = _PluginKind(
    'policy',
    POLICIES,
    policy.Policy,  # type: ignore[type-abstract]
    'kind',
    pairing.may_be_kind,
)
_ORDER = _PluginKind(
    'order',
    ORDERS,
    order.Order,  # type: ignore[type-abstract]
)
_VICTIMS = _PluginKind(
    'victims',
    VICTIMS,
    victims.Victims,  # type: ignore[type-abstract]
)
_BATCH = _PluginKind(
    'batch system',
    BATCH,
    system.BatchSystem,  # type: ignore[type-abstract]
)


def metric_names() -> tuple[str, ...]:
    """Return the names of all installed metrics, sorted; imports none."""
    return _installed_names(METRICS)


def policy_names() -> tuple[str, ...]:
    """Return the names of all installed policies, sorted; imports none."""
    return _installed_names(POLICIES)


def order_names() -> tuple[str, ...]:
    """Return the names of all installed orders, sorted; imports none."""
    return _installed_names(ORDERS)


def load_metric(name: str) -> metric.Metric:
    """Load a metric.

    :param name: of its class, such as ``GreedinessMetric``.
    :raises UnknownPlugin: if it is not installed; lists the installed ones.
    :raises PluginError: if it cannot be imported or is no metric.
    """
    return _load(_METRIC, name)


def load_policy(name: str) -> policy.Policy:
    """Load a policy.

    :param name: such as ``feedback``.
    :raises UnknownPlugin: if it is not installed; lists the installed ones.
    :raises PluginError: if it cannot be imported or is no policy.
    """
    return _load(_POLICY, name)


def load_order(
    name: str, parameters: Mapping[str, float] = _NO_PARAMETERS
) -> order.Order:
    """Load an order of the queue.

    :param name: such as ``fair_tree``.
    :param parameters: its numbers by name; the others have their defaults.
    :raises UnknownPlugin: if it is not installed; lists the installed ones.
    :raises PluginError: if it cannot be imported, is no order, or has no such
        parameter.
    """
    return _load(_ORDER, name, parameters)


def load_victims(
    name: str, parameters: Mapping[str, float] = _NO_PARAMETERS
) -> victims.Victims:
    """Load a method that chooses victims; see :func:`load_order`.

    :param name: such as ``least``.
    :param parameters: its numbers by name.
    :raises UnknownPlugin: if it is not installed.
    :raises PluginError: if it is unusable.
    """
    return _load(_VICTIMS, name, parameters)


def load_batch(
    name: str, parameters: Mapping[str, float] = _NO_PARAMETERS
) -> system.BatchSystem:
    """Load a batch system; see :func:`load_order`.

    :param name: such as ``slurm``.
    """
    return _load(_BATCH, name, parameters)


def describe_metrics() -> Mapping[str, str]:
    """Return the description of each installed metric.

    :returns: description by name, sorted; ``unusable: `` and the cause for a
        metric that cannot be loaded.
    """
    return _descriptions(_METRIC)


def describe_policies() -> Mapping[str, str]:
    """Return the description of each policy; see :func:`describe_metrics`."""
    return _descriptions(_POLICY)


def describe_orders() -> Mapping[str, str]:
    """Return the description of each order; see :func:`describe_metrics`."""
    return _descriptions(_ORDER)


def describe_victims() -> Mapping[str, str]:
    """Return the description of each victims plugin; see
    :func:`describe_metrics`.
    """
    return _descriptions(_VICTIMS)


def warning(metric_name: str, policy_name: str) -> str:
    """Return a warning if users may be worse off with a pair than without an
    agent.

    :returns: see :func:`.pairing.pairing_warning`; empty if a plugin cannot be
        loaded.
    """
    try:
        chosen, used = load_metric(metric_name), load_policy(policy_name)
    except exception.PluginError:
        return ''
    return pairing.pairing_warning(
        metric_name, chosen.suits, policy_name, used.kind
    )


def _installed_names(namespace: str) -> tuple[str, ...]:
    manager = _plugin_manager(namespace, '')
    return tuple(sorted(set(manager.entry_points_names())))


def _descriptions(kind: _PluginKind[_Base]) -> dict[str, str]:
    result: dict[str, str] = {}
    for name in _installed_names(kind.namespace):
        try:
            result[name] = _load(kind, name).description
        except exception.PluginError as error:
            result[name] = f'unusable: {error}'
    return result


def _load(
    kind: _PluginKind[_Base],
    name: str,
    parameters: Mapping[str, float] = _NO_PARAMETERS,
) -> _Base:
    if name not in _installed_names(kind.namespace):
        raise exception.UnknownPlugin(_unknown_message(kind, name))
    extensions = _import_plugin(kind, name)
    if len(extensions) > 1:
        places = ', '.join(item.entry_point_target for item in extensions)
        raise exception.PluginError(
            f'{kind.noun} {name} is installed more than once: {places}'
        )
    plugin = _checked_class(kind, name, extensions[0].plugin)
    known = inspect.signature(plugin).parameters
    if unknown := sorted(parameters.keys() - known.keys()):
        raise exception.PluginError(
            f'{kind.noun} {name} has no number {", ".join(unknown)}; it has:'
            f' {", ".join(known) or "none"}'
        )
    try:
        return plugin(**parameters)
    except Exception as error:
        given = ', '.join(f'{key} = {parameters[key]}' for key in parameters)
        raise exception.PluginError(
            f'{kind.noun} {name} cannot be created'
            f' {"with " + given if given else "without arguments"}: {error}'
        ) from error


def _import_plugin(
    kind: _PluginKind[_Base], name: str
) -> 'list[extension.Extension[Any]]':
    reasons: list[BaseException] = []
    manager = _plugin_manager(kind.namespace, name, reasons)
    if reasons:
        what = f'{type(reasons[0]).__name__}: {reasons[0]}'
        raise exception.PluginError(
            f'{kind.noun} {name} cannot be imported: {what}'
        ) from reasons[0]
    return list(manager)


def _checked_class(
    kind: _PluginKind[_Base], name: str, found: object
) -> type[_Base]:
    title = kind.base.__name__
    if not (isinstance(found, type) and issubclass(found, kind.base)):
        raise exception.PluginError(
            f'{kind.noun} {name} is {found!r}, expected a subclass of {title}'
        )
    if inspect.isabstract(found):
        missing = ', '.join(sorted(found.__abstractmethods__))
        raise exception.PluginError(
            f'{kind.noun} {name} lacks the methods: {missing}'
        )
    if not getattr(found, 'description', ''):
        raise exception.PluginError(
            f'{kind.noun} {name} lacks a description, one sentence'
        )
    given = getattr(found, kind.pairing) if kind.pairing else True
    if not kind.is_pairing(given):
        raise exception.PluginError(
            f'{kind.noun} {name} has {kind.pairing} = {given!r}, expected '
            'what nova_fairness.model.pairing knows'
        )
    return found


def _plugin_manager(
    namespace: str, name: str, reasons: list[BaseException] | None = None
) -> 'named.NamedExtensionManager[Any]':
    """Import the plugin of one name; the empty name imports none."""
    return named.NamedExtensionManager(
        namespace,
        names=[name],
        on_load_failure_callback=lambda _plugin_manager, _entry, error: (
            None if reasons is None else reasons.append(error)
        ),
        on_missing_entrypoints_callback=None,
    )


def _unknown_message(kind: _PluginKind[_Base], name: str) -> str:
    installed = _installed_names(kind.namespace)
    text = f'no {kind.noun} {name!r}; installed: {", ".join(installed)}'
    leaf = name.rsplit('.', 1)[-1]
    if leaf != name and leaf in installed:
        text += f'. Give the name of the class alone: {leaf}'
    return text
