# SPDX-License-Identifier: Apache-2.0

"""Builders of the ledger keeper, and of the client that queries agents."""

import functools
import math
from typing import Any

from oslo_config import cfg

from nova_fairness import exception
from nova_fairness.cluster import agent_reports
from nova_fairness.cluster import snapshot
from nova_fairness.cluster.store import store as store_module
from nova_fairness.cluster.usage import charging as charging_module
from nova_fairness.cluster.usage import spending
from nova_fairness.rpc import client
from nova_fairness.runtime import transport
from nova_fairness.shares import budgets
from nova_fairness.shares import measured

_ASKED_S = 5.0
"""Seconds to wait for answers of agents."""


def build_ledger_keeper(
    conf: cfg.ConfigOpts,
    store: store_module.Store,
    reader: snapshot.CloudReader,
) -> charging_module.LedgerKeeper:
    """Build the ledger keeper, which charges use to accounts.

    :raises ConfigurationError: if agents are needed and cannot be queried, or
        a weight is not a number >= 0.
    """
    options = conf.fairness_cluster
    measures = agent_reports.ReportedUse(_query_function(conf))
    return charging_module.LedgerKeeper(
        store,
        reader,
        options.half_life,
        _budget_terms(conf),
        spending.SpendingGroups(
            store,
            options.lowest_rate,
            options.history,
        ),
        measured.Charge(options.charge),
        measures.measured,
        _class_weights(conf, 'charge_weights'),
        lambda: measures.outliers,
    )


def _query_function(conf: cfg.ConfigOpts) -> agent_reports.Ask:
    """Build the function that queries agents for the parts of the cloud that
    owners use.

    :raises ConfigurationError: if agents are needed and cannot be queried.
    """
    if conf.fairness_cluster.charge == measured.Charge.ALLOCATED.value:
        return dict
    asked = build_agent_client(
        conf, f'[fairness_cluster] charge = {conf.fairness_cluster.charge}'
    )
    return functools.partial(_parse_answers, asked)


def _parse_answers(asked: client.FairnessClient) -> list[Any]:
    """Return the answers of several agents. Agents share a topic and receive
    its calls in turn.

    :raises FairnessError: if no agent answers.
    """
    found, errors = client.ask_all(
        map(str, range(agent_reports.ASKED)),
        lambda _: asked.call(None, 'get_usage'),
        agent_reports.ASKED,
        _ASKED_S,
    )
    if not found:
        raise next(iter(errors.values()))
    return list(found.values())


def build_agent_client(
    conf: cfg.ConfigOpts, option: str
) -> client.FairnessClient:
    """Build the client that calls agents.

    :param option: option that requires agents, with its value, for the error.
    :raises ConfigurationError: if ``transport_url`` is missing.
    """
    if not conf.transport_url:
        raise exception.ConfigurationError(
            f'{option} needs transport_url, by which agents are asked'
        )
    return client.FairnessClient(
        transport.open_transport(conf, client.ALLOWED_REMOTE_MODULES),
        _ASKED_S,
        conf.fairness_exchange.domain,
    )


def _budget_terms(conf: cfg.ConfigOpts) -> budgets.BudgetTerms:
    """Return the period and the weights of budgets, and the part of their use
    that preemptible servers are charged.

    :raises ConfigurationError: if a weight is not a number of at least 0.
    """
    options = conf.fairness_cluster
    return budgets.BudgetTerms(
        budgets.Period(options.budget_period),
        _class_weights(conf, 'budget_weights'),
        options.preemptible_charge,
    )


def _class_weights(conf: cfg.ConfigOpts, option: str) -> dict[str, float]:
    """Return the weights of resource classes from an option.

    :raises ConfigurationError: if a weight is not a number of at least 0.
    """
    weights = dict(conf.fairness_cluster[option])
    for name, weight in weights.items():
        if not 0 <= weight < math.inf:
            raise exception.ConfigurationError(
                f'[fairness_cluster] {option}: expected numbers of at'
                f' least 0, got {weight!r} for {name}'
            )
    return weights
