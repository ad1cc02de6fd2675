# SPDX-License-Identifier: Apache-2.0

"""Traffic control that lives in memory and obeys operations."""

import dataclasses

from nova_fairness.apply.network import commands
from nova_fairness.apply.network import state


class FakeNetwork:
    """Interfaces, qdiscs, classes and filters of a host.

    :ivar broken: operations, by name and device, that fail.
    :ivar done: every operation that was asked for.
    """

    def __init__(self, *links: str) -> None:
        self.links = {name: place for place, name in enumerate(links, 1)}
        self.qdiscs: dict[str, list[state.Qdisc]] = {}
        self.trees: dict[str, state.ClassTree] = {}
        self.redirects: dict[str | int, tuple[str, int]] = {}
        self.broken: set[tuple[object, ...]] = set()
        self.done: list[tuple[object, ...]] = []

    def read(self) -> state.Kernel:
        return state.Kernel(
            dict(self.links),
            {name: tuple(many) for name, many in self.qdiscs.items()},
            dict(self.trees),
            dict(self.redirects),
        )

    def run(self, operations) -> list[str]:
        return [self._do(tuple(item)) for item in operations]

    def _do(self, item) -> str:
        self.done.append(item)
        if refusal := commands.validation_error(item):
            return refusal
        if item[:2] in self.broken:
            return 'it is broken'
        makes_its_own = item[0] in ('ifb', 'block')
        if not makes_its_own and item[1] not in self.links:
            return f'Cannot find device {item[1]}'
        method = f'_{item[0]}'.replace('-', '_')
        return getattr(self, method)(*item[1:]) or ''

    def add_qdisc(self, device, kind, handle, parent, blocks=(0, 0)):
        found = state.Qdisc(kind, handle, parent, blocks)
        self.qdiscs.setdefault(device, []).append(found)

    def _drop(self, device, parent):
        kept = [q for q in self.qdiscs.get(device, []) if q.parent != parent]
        self.qdiscs[device] = kept

    def unplug(self, device):
        self.links.pop(device)
        self.qdiscs.pop(device, None)
        self.trees.pop(device, None)
        self.redirects.pop(device, None)

    def _ifb(self, name):
        self.links[name] = 100 + len(self.links)

    def _no_ifb(self, name):
        self.unplug(name)

    def _root(self, device):
        if any(
            q.parent == 'root' and q.handle
            for q in self.qdiscs.get(device, [])
        ):
            return 'Exclusivity flag on, cannot modify'
        self._drop(device, 'root')
        self.add_qdisc(device, 'htb', state.ROOT_HANDLE, 'root')
        self.trees[device] = state.NO_TREE
        return ''

    def _no_root(self, device):
        if not self.trees.pop(device, None):
            return 'Invalid handle'
        self._drop(device, 'root')
        return ''

    def _change(self, device, **parts):
        self.trees[device] = dataclasses.replace(self.trees[device], **parts)

    def _table(self, device, side):
        self._change(device, has_table=True)

    def _class(self, device, minor, rate, ceil, burst, cburst, quantum):
        made = {minor: state.Class(rate, ceil, quantum)}
        self._change(device, classes={**self.trees[device].classes, **made})

    def _no_class(self, device, minor):
        tree = self.trees[device]
        if any(item.minor == minor for item in tree.filters.values()):
            return 'Class is in use'
        kept = {m: item for m, item in tree.classes.items() if m != minor}
        self._change(device, classes=kept)
        return ''

    def _filter(self, device, side, mac, number, minor, tap=''):
        tree = self.trees[device]
        handle = state.bucket_of(mac), number
        if handle in tree.filters:
            return 'Filter already exists'
        made = {handle: state.MacFilter(mac, minor, tap)}
        self._change(device, filters={**tree.filters, **made})
        return ''

    _tap_filter = _filter

    def _no_filter(self, device, bucket, number):
        kept = dict(self.trees[device].filters)
        kept.pop((bucket, number))
        self._change(device, filters=kept)

    def _ingress(self, device):
        if any(q.parent == 'ingress' for q in self.qdiscs.get(device, [])):
            return 'Exclusivity flag on, cannot modify'
        self.add_qdisc(device, 'ingress', 0xFFFF, 'ingress')
        self.redirects[device] = '', 0
        return ''

    def _no_ingress(self, device):
        self._drop(device, 'ingress')
        self.redirects.pop(device)

    def _redirect(self, device):
        self.redirects[device] = state.IFB_IN, self.redirects[device][1]

    def _no_redirect(self, device):
        self.redirects[device] = '', self.redirects[device][1]

    def _clsact(self, device, *blocks):
        if any(q.parent == 'ingress' for q in self.qdiscs.get(device, [])):
            return 'Exclusivity flag on, cannot modify'
        self.add_qdisc(device, 'clsact', 0xFFFF, 'ingress', blocks)
        for block in filter(None, blocks):
            self.redirects.setdefault(block, ('', 0))
        return ''

    def _no_clsact(self, device):
        self._drop(device, 'ingress')
        used = {
            b for many in self.qdiscs.values() for q in many for b in q.blocks
        }
        for block in set(state.BLOCKS) - used:
            self.redirects.pop(block, None)

    def _block(self, block):
        if block not in self.redirects:
            return f'Cannot find block {block}'
        self.redirects[block] = state.BLOCKS[block], 0
        return ''
