# SPDX-License-Identifier: Apache-2.0

"""Rolls out one epoch of metric and policy to a whole domain.

If peers have keys, the caller makes and signs the epoch. Otherwise the host
with the newest epoch makes it, and the other hosts take over its answer.
"""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any
from typing import Protocol

from nova_fairness import exception
from nova_fairness.rpc import client as client_module
from nova_fairness.rpc import protocol

_MAKERS = 3
"""Largest number of hosts that are asked to make the epoch, one after the
other.
"""

_OTHER = {'set_metric': 'policy', 'set_policy': 'metric'}

Statuses = Mapping[str, Any]
"""Answers to ``get_status``, by host."""


class Signer(Protocol):
    """Signs choices, and checks the signatures of others."""

    def signed(
        self,
        epoch: int,
        metric: str,
        policy: str,
        user_id: str = '',
        request_id: str = '',
    ) -> dict[str, Any]:
        """All fields of a choice, with ``origin`` and ``signature``.

        :raises NotAllowed: if the own key cannot sign.
        """

    def check(self, choice: Mapping[str, Any]) -> None:
        """Check that a choice is signed.

        :raises ReportRefused: if it is not.
        """


def set_for_all(
    client: client_module.FairnessClient,
    hosts: Iterable[str],
    method: str,
    name: str,
    signer: Signer | None = None,
) -> client_module.Answers:
    """Set the metric or the policy on many hosts, as one epoch.

    :param method: ``set_metric`` or ``set_policy``.
    :param name: of the metric or policy.
    :param signer: signer of the caller, if peers have keys.
    :raises NotAllowed: if the own key cannot sign.
    """
    found = client.call_all(hosts, 'get_status')
    refused = dict(found.refused)
    if signer is not None and found.by_host:
        given = signed(client.context, found.by_host, method, name, signer)
        told = client.call_all(found.by_host, method, **given)
        return _with_earlier(told, found.not_reached, refused)
    for maker in _newest_first(found.by_host)[:_MAKERS]:
        try:
            made = client.call(maker, method, name=name)
            given = _arguments(method, made)
        except exception.FairnessError as error:
            refused[maker] = str(error)
            continue
        except exception.UNREADABLE:
            refused[maker] = 'its answer cannot be understood'
            continue
        others = set(found.by_host) - {maker, *refused}
        told = client.call_all(others, method, **given)
        told = _with_earlier(told, found.not_reached, refused)
        return client_module.Answers(
            _sorted({**told.by_host, maker: made}),
            told.not_reached,
            told.refused,
        )
    unasked = set(found.by_host) - set(refused)
    refused.update(dict.fromkeys(unasked, 'not asked, because others refused'))
    return client_module.Answers({}, found.not_reached, _sorted(refused))


def signed(
    context: Mapping[str, str],
    statuses: Statuses,
    method: str,
    name: str,
    signer: Signer,
) -> dict[str, Any]:
    """Make and sign the next epoch.

    Hosts may lie: an epoch that no controller signed does not count.

    :param context: of the call of the method.
    :param statuses: of one host or more.
    :returns: arguments of the method.
    :raises NotAllowed: if the own key cannot sign.
    :raises RpcError: if no host tells which metric and policy are in force.
    """
    statuses = _usable_statuses(statuses)
    if not statuses:
        raise exception.RpcError(
            'no host that answers says which metric and policy are in force'
        )
    newest = _newest_signed(statuses, signer)
    chosen = {
        'metric': newest.get('metric') or _most_common(statuses, 'metric'),
        'policy': newest.get('policy') or _most_common(statuses, 'policy'),
        method.removeprefix('set_'): name,
    }
    made = signer.signed(newest.get('epoch', 0) + 1, **chosen, **context)
    return _arguments(method, made)


def _newest_signed(statuses: Statuses, signer: Signer) -> Mapping[str, Any]:
    newest: Mapping[str, Any] = {}
    for status in statuses.values():
        desired = status['desired']
        if desired['epoch'] <= newest.get('epoch', 0):
            continue
        try:
            signer.check(desired)
        except (exception.ReportRefused, ValueError):
            continue
        newest = desired
    return newest


def _most_common(statuses: Statuses, key: str) -> str:
    """The metric or policy in force on most hosts."""
    found = sorted(str(status[key]) for status in statuses.values())
    return collections.Counter(found).most_common(1)[0][0]


def _arguments(method: str, made: Mapping[str, Any]) -> dict[str, Any]:
    other = _OTHER[method]
    signature = made.get('signature')
    return {
        'name': made[method.removeprefix('set_')],
        'epoch': made['epoch'],
        'origin': made['origin'],
        other: made[other],
        **({'signature': signature} if signature else {}),
    }


def _with_earlier(
    told: client_module.Answers,
    not_reached: Mapping[str, str],
    refused: Mapping[str, str],
) -> client_module.Answers:
    """Answers, together with earlier failures of hosts."""
    return client_module.Answers(
        told.by_host,
        _sorted({**not_reached, **told.not_reached}),
        _sorted({**refused, **told.refused}),
    )


def _newest_first(statuses: Statuses) -> list[str]:
    known = _usable_statuses(statuses)
    return sorted(
        known, key=lambda host: (-known[host]['desired']['epoch'], host)
    )


def _usable_statuses(statuses: Statuses) -> dict[str, Any]:
    """Statuses that have all needed fields: a host may send anything."""
    return {
        host: status
        for host, status in statuses.items()
        if isinstance(status, Mapping)
        and isinstance(status.get('desired'), Mapping)
        and _is_epoch(status['desired'].get('epoch'))
        and all(isinstance(status.get(key), str) for key in _OTHER.values())
    }


def _is_epoch(value: object) -> bool:
    return type(value) is int and 0 <= value < protocol.LARGEST_EPOCH


def _sorted(by_host: Mapping[str, Any]) -> dict[str, Any]:
    return dict(sorted(by_host.items()))
