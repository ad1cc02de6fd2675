# SPDX-License-Identifier: Apache-2.0

"""What a scenario with network load must show."""

from collections.abc import Iterator

from fairness_lab.results import check

FROM_CLASSES = 0.05
"""How far a VM's part of the link may be from that of its class."""

OF_LINK = 0.93
"""Part of the link that whoever wants it gets, alone or together."""


def one_node_network(result: check.Result) -> Iterator[check.Check]:
    """Judge shares of the link, and how much of it is used."""
    if not result['agents']:
        return
    found = [item for item in result['network'] if item['rivals']]
    contended = [item for item in found if item['rivals'] > 1]
    alone = [item for item in found if item['rivals'] == 1]
    for name, items in (('contended', contended), ('lone', alone)):
        yield check.Check(
            f'network-windows-{name}',
            f'{name} stretches with network load',
            float(len(items)),
            lowest=1.0,
        )
    for number, item in enumerate(contended, start=1):
        span = f'{item["from_s"]:.0f} to {item["to_s"]:.0f} s'
        yield check.Check(
            f'network-shares-{number}',
            f'{span}, {item["direction"]}: largest distance of a VM from '
            'the part of its class',
            item['off_by'],
            highest=FROM_CLASSES,
        )
    for number, item in enumerate(alone, start=1):
        span = f'{item["from_s"]:.0f} to {item["to_s"]:.0f} s'
        yield check.Check(
            f'network-lone-{number}',
            f'{span}, {item["direction"]}: part of the link that a lone VM '
            'has',
            item['link_part'],
            lowest=OF_LINK,
        )
