# SPDX-License-Identifier: Apache-2.0

"""Answers to calls about groups with spending rates, prices and meters."""

from collections.abc import Mapping
from collections.abc import Sequence
import math
from typing import Any

from nova_fairness import exception
from nova_fairness.cluster import service as service_module
from nova_fairness.cluster.store import store as store_module
from nova_fairness.cluster.usage import spending as spending_module
from nova_fairness.model import market
from nova_fairness.model import moments
from nova_fairness.rpc import spending
from nova_fairness.runtime import signatures as signatures_module
from nova_fairness.shares import tree as tree_module


class GroupOperations(spending.SpendingCalls):
    """Answers calls about spending groups, in the leader.

    :param service: service of this process; it may be the leader.
    :param signatures: sign the rates for agents; ``None`` if the peers have no
        keys.
    """

    _store: store_module.Store

    def __init__(
        self,
        service: service_module.Service,
        signatures: signatures_module.Signatures | None,
    ) -> None:
        self._signatures = signatures
        self._service = service
        self._trading = service.charging.trading

    def groups(
        self, project: str | None, marker: str | None, limit: int
    ) -> spending.Answer:
        """Return one page of groups with spending rates, sorted by project
        and name.
        """
        self._service.last()
        listed = [
            {**spending_module.group_facts(each), 'id': _group_id(each.group)}
            for each in self._trading.standings(project)
        ]
        found = [each for each in listed if each['id'] > (marker or '')]
        return {'groups': found[:limit], 'more': len(found) > limit}

    def create_group(
        self, project: str, name: str, rate: float, count: int
    ) -> spending.Answer:
        """Create a group with a spending rate."""
        if self._trading.group(project, name) is not None:
            raise exception.IllegalStep(f'there is a group {name} already')
        return self._store_group(
            market.SpendingGroup(project, name, rate, count)
        )

    def set_group(
        self, project: str, name: str, rate: float | None, count: int | None
    ) -> spending.Answer:
        """Change the rate or the count of a group."""
        before = self._require_group(project, name)
        return self._store_group(
            market.SpendingGroup(
                project,
                name,
                before.rate if rate is None else rate,
                before.count if count is None else count,
            )
        )

    def delete_group(self, project: str, name: str) -> spending.Answer:
        """Delete a group; its servers then have the lowest rate."""
        self._require_group(project, name)
        self._service.change(
            lambda epoch: self._trading.change(project, name, None, epoch)
        )
        return {'group': None}

    def prices(
        self,
        host: str | None,
        marker: str | None,
        limit: int,
        project: str | None = None,
    ) -> spending.Answer:
        """Return the present prices of all hosts, or the past prices of one
        host.
        """
        self._service.last()
        if host is not None:
            if project is not None:
                # For every host: so callers do not learn which hosts exist.
                raise exception.UnknownHost(f'there is no host {host}')
            return self._past_prices(host, marker, limit)
        now = [_price_facts(each) for each in self._present_prices(project)]
        found = [each for each in now if each['id'] > (marker or '')]
        return {'prices': found[:limit], 'more': len(found) > limit}

    def _present_prices(self, project: str | None) -> list[market.Price]:
        if project is None:
            return self._trading.prices()
        if not project:
            return []
        return self._trading.prices_of_others(
            project,
            lambda host: self._store.pseudonym('host', project, host),
        )

    def _past_prices(
        self, host: str, marker: str | None, limit: int
    ) -> spending.Answer:
        # One more price than needed shows whether another page follows.
        before = None if marker is None else _time_of_marker(marker)
        past = self._trading.past(host, before, limit + 1)
        found = [{**_price_facts(each), 'id': repr(each.at)} for each in past]
        return {'prices': found[:limit], 'more': len(found) > limit}

    def report_meters(
        self, host: str, meters: Mapping[str, tuple[str, int]]
    ) -> spending.Answer:
        """Charge the measured use of the servers of a host."""
        self._service.last()
        return {'elsewhere': self._trading.report(host, meters)}

    def rates(self, servers: Sequence[str], known: str) -> spending.Answer:
        """Return the spending rates of servers."""
        self._service.last()
        rates = self._trading.rates(servers)
        version = tree_module.accounts_hash([rates])
        if version == known:
            return {'version': version, 'rates': None}
        told = {'version': version, 'rates': rates}
        if self._signatures:
            told |= self._signatures.signed_tree(version)
        return told

    def _store_group(self, group: market.SpendingGroup) -> spending.Answer:
        project, name = group.project, group.name
        self._service.change(
            lambda epoch: self._trading.change(project, name, group, epoch)
        )
        [told] = [
            {**spending_module.group_facts(each), 'id': _group_id(group)}
            for each in self._trading.standings(group.project)
            if each.group.name == group.name
        ]
        return {'group': told}

    def _require_group(self, project: str, name: str) -> market.SpendingGroup:
        self._service.last()
        found = self._trading.group(project, name)
        if found is None:
            raise exception.UnknownGroup(f'there is no group {name}')
        return found


def _group_id(group: market.SpendingGroup) -> str:
    return f'{group.project}/{group.name}'


def _price_facts(price: market.Price) -> dict[str, Any]:
    return {
        'id': price.host,
        'host': price.host,
        'resource_class': price.resource_class,
        'price': price.price,
        'capacity': price.capacity,
        'at': moments.answer(price.at),
    }


def _time_of_marker(marker: str) -> float:
    """Return the time of the last price of the previous page.

    :raises BadArgument: if the marker is not the ID of a price.
    """
    try:
        moment = float(marker)
    except ValueError:
        moment = math.nan
    if not math.isfinite(moment):
        raise exception.BadArgument(
            f'marker must be the id of a price, got {marker!r:.50}'
        )
    return moment
