# SPDX-License-Identifier: Apache-2.0

"""Functions that register and list all options of this package."""

from collections.abc import Sequence
import copy
from typing import Any

from oslo_config import cfg

from nova_fairness.conf import disk
from nova_fairness.conf import exchange
from nova_fairness.conf import fairness
from nova_fairness.conf import memory
from nova_fairness.conf import network
from nova_fairness.conf import node
from nova_fairness.conf import nova
from nova_fairness.conf import observe
from nova_fairness.conf import transport

_GROUPS = (fairness, node, network, disk, memory, exchange, observe, nova)


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register every option of this package on a configuration."""
    for module in _GROUPS:
        register_group(conf, module.GROUP, module.OPTS)
    transport.register_opts(conf)


def register_group(
    conf: cfg.ConfigOpts, group: cfg.OptGroup, options: Sequence[Any]
) -> None:
    """Register one group of options on a configuration.

    The group is copied, because oslo.config stores values in the group object.
    Otherwise all configurations of a process would share their values.
    """
    conf.register_group(copy.deepcopy(group))
    conf.register_opts(options, group=group.name)


def list_opts() -> Sequence[tuple[cfg.OptGroup | None, Sequence[Any]]]:
    """Return all options, for the generator of the sample file."""
    return [
        (None, copy.deepcopy(transport.SAMPLE)),
        *((module.GROUP, copy.deepcopy(module.OPTS)) for module in _GROUPS),
    ]
