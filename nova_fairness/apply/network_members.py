# SPDX-License-Identifier: Apache-2.0

"""Which VM has which class and which filters: pure."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools

from nova_fairness import exception
from nova_fairness.apply.network import plan
from nova_fairness.apply.network import state
from nova_fairness.model import instance

Members = Mapping[str, plan.Member]

_MOST_IN_BUCKET = 0xFFF
_LEAST_RATE = 1000


def admitted(
    members: Members,
    key: str,
    nics: Sequence[instance.Nic],
    rate: int,
) -> plan.Member:
    """Give a VM a class, or the one that it has its present interfaces.

    :param key: of the incarnation.
    :param nics: those that can be steered, not empty.
    :param rate: bytes per second.
    :raises WriteRefused: if there are no numbers left.
    """
    known = members.get(key)
    if known is not None and has_interfaces(known, nics):
        return dataclasses.replace(known, rate=rate)
    others = [item for name, item in members.items() if name != key]
    minor = _free_minor(others) if known is None else known.minor
    old = {} if known is None else known.filters
    used = {handle for item in others for handle in item.filters} | set(old)
    filters: dict[state.FilterHandle, str] = {}
    for mac in dict.fromkeys(nic.mac for nic in nics):
        kept = [handle for handle, found in old.items() if found == mac]
        handle = kept[0] if kept else _free_number(mac, used)
        filters[handle] = mac
        used.add(handle)
    taps = tuple(dict.fromkeys(nic.tap for nic in nics))
    return plan.Member(minor, filters, taps, rate)


def _free_minor(members: Iterable[plan.Member]) -> int:
    used = {item.minor for item in members}
    numbers = range(state.FIRST_MINOR, state.LAST_MINOR + 1)
    return _first(numbers, used, 'class')


def _free_number(
    mac: str, used: Iterable[state.FilterHandle]
) -> state.FilterHandle:
    bucket = state.bucket_of(mac)
    taken = {number for found, number in used if found == bucket}
    return bucket, _first(range(1, _MOST_IN_BUCKET + 1), taken, 'filter')


def _first(numbers: Iterable[int], used: set[int], what: str) -> int:
    found = next((n for n in numbers if n not in used), None)
    if found is None:
        raise exception.WriteRefused(f'there is no number left for a {what}')
    return found


def has_interfaces(member: plan.Member, nics: Sequence[instance.Nic]) -> bool:
    """Tell whether a VM's classes are made for these interfaces."""
    macs = {nic.mac for nic in nics}
    taps = {nic.tap for nic in nics}
    return macs == set(member.filters.values()) and taps == set(member.taps)


def with_rates(members: Members, tree: state.Tree) -> Members:
    """Recorded VMs, with the rates that the kernel holds."""
    nothing = state.Class(_LEAST_RATE, 0, 0)
    return {
        key: dataclasses.replace(
            item, rate=tree.classes.get(item.minor, nothing).rate
        )
        for key, item in members.items()
    }


def limited(
    before: Members, after: Members, capacity: int
) -> tuple[Members, frozenset[str]]:
    """Keep the sum of rates within the link.

    :returns: who has which rate, and the keys of those that would have made
        it too much: they keep what they had.
    """
    if sum(item.rate for item in after.values()) <= capacity:
        return after, frozenset()
    kept: dict[str, plan.Member] = {}
    refused: set[str] = set()
    left = capacity - sum(
        min(item.rate, before[key].rate if key in before else 0)
        for key, item in after.items()
    )
    for key, item in sorted(after.items(), key=lambda pair: pair[1].minor):
        had = before[key].rate if key in before else 0
        grown = item.rate - had
        if grown <= max(0, left):
            left -= max(0, grown)
            kept[key] = item
            continue
        refused.add(key)
        if key in before:
            kept[key] = dataclasses.replace(item, rate=had)
    return kept, frozenset(refused)


def union(one: Members, other: Members) -> dict[str, plan.Member]:
    """Give everybody who is in either; ``other`` wins."""
    return dict(itertools.chain(one.items(), other.items()))
