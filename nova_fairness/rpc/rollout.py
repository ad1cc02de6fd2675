# SPDX-License-Identifier: Apache-2.0

"""One epoch of metric and policy for a whole domain."""

from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from nova_fairness import exception
from nova_fairness.rpc import client as client_module

_MAKERS = 3
"""Hosts asked to make the epoch before all are left as they are."""

_OTHER = {'set_metric': 'policy', 'set_policy': 'metric'}


def set_for_all(
    client: client_module.FairnessClient,
    hosts: Iterable[str],
    method: str,
    name: str,
) -> client_module.Answers:
    """Set the metric or the policy on many hosts, as one epoch.

    One host makes the epoch, the one that knows the newest so far; the
    others are given what it answered.

    :param method: ``set_metric`` or ``set_policy``.
    :param name: of the metric or policy.
    """
    found = client.to_all(hosts, 'get_status')
    refused = dict(found.refused)
    for maker in _newest_first(found.by_host)[:_MAKERS]:
        try:
            made = client.call(maker, method, name=name)
        except exception.FairnessError as error:
            refused[maker] = str(error)
            continue
        others = set(found.by_host) - {maker, *refused}
        told = _tell(client, others, method, made)
        return client_module.Answers(
            _sorted({**told.by_host, maker: made}),
            _sorted({**found.not_reached, **told.not_reached}),
            _sorted({**refused, **told.refused}),
        )
    unasked = set(found.by_host) - set(refused)
    refused.update(dict.fromkeys(unasked, 'not asked, because others refused'))
    return client_module.Answers({}, found.not_reached, _sorted(refused))


def _tell(
    client: client_module.FairnessClient,
    hosts: Iterable[str],
    method: str,
    made: Mapping[str, Any],
) -> client_module.Answers:
    other = _OTHER[method]
    own = 'metric' if other == 'policy' else 'policy'
    return client.to_all(
        hosts,
        method,
        name=made[own],
        epoch=made['epoch'],
        origin=made['origin'],
        **{other: made[other]},
    )


def _newest_first(statuses: Mapping[str, Any]) -> list[str]:
    return sorted(
        statuses,
        key=lambda host: (-int(statuses[host]['desired']['epoch']), host),
    )


def _sorted(by_host: Mapping[str, Any]) -> dict[str, Any]:
    return dict(sorted(by_host.items()))
