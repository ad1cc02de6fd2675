# SPDX-License-Identifier: Apache-2.0

"""``nova-fairness-ctl top``: shows the use of users and their waiting VMs, and
refreshes.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import sys
import time
from typing import Any

from nova_fairness.cmd import ctl_tables
from nova_fairness.model import plain
from nova_fairness.model import wording

Answers = Mapping[str, Any]
HostAnswers = tuple[Answers, Answers, Mapping[str, str]]
"""Users by host, instances by host, and by host the reason for a missing
answer.
"""

_CLEARED = '\x1b[H\x1b[2J'
_COLUMNS = (
    ('CPU', 'cpu_time'),
    ('MEMORY', 'memory'),
    ('READ', 'disk_read'),
    ('WRITTEN', 'disk_written'),
    ('RECEIVED', 'net_received'),
    ('SENT', 'net_sent'),
)
_TITLES = (
    'USER',
    'HEAVINESS',
    ctl_tables.SHADOW,
    *(title for title, _ in _COLUMNS),
    'VMS',
    'WAIT',
    'CPU WEIGHTS',
)
_EXPLAINED = (
    'Use of each resource in percent of the quota of the user. '
    'WAIT: number of VMs that want more of a resource than they get.'
)


def show(
    ask: Callable[[], HostAnswers], interval_s: float, count: int | None
) -> bool:
    """Show the use of all users, and refresh it.

    :param ask: queries every host.
    :param interval_s: seconds from one refresh to the next, > 0.
    :param count: number of refreshes; ``None``: until Ctrl-C.
    :returns: whether every host answered the last query.
    """
    shown = 0
    silent: Mapping[str, str] = {}
    try:
        while True:
            began_s = time.monotonic()
            users, instances, silent = ask()
            _write(page_text(users, instances, silent))
            shown += 1
            if shown == count:
                break
            time.sleep(max(0.0, began_s + interval_s - time.monotonic()))
    except KeyboardInterrupt:
        pass  # the usual end
    return not silent


def _write(text: str) -> None:
    if sys.stdout.isatty():
        sys.stdout.write(_CLEARED + plain.lines(text))
    else:
        sys.stdout.write(plain.lines(text + '\n'))
    sys.stdout.flush()


def page_text(
    users: Answers, instances: Answers, silent: Mapping[str, str]
) -> str:
    """Return the lines of one refresh; the heaviest user is first.

    :param users: answers to ``list_users``, by host.
    :param instances: answers to ``list_instances``, by host.
    :param silent: by host, the reason for a missing answer.
    """
    entity = next((said['entity'] for said in users.values()), 'user')
    vms: dict[str, list[Mapping[str, Any]]] = {}
    for said in instances.values():
        for vm in said['instances']:
            vms.setdefault(vm[entity], []).append(vm)
    names = {name for said in users.values() for name in said['users']}
    rows = [
        _row(
            _display_name(vms.get(name, ()), entity, name),
            told,
            ctl_tables.largest_shadow(users, 'users', name),
            vms.get(name, ()),
        )
        for name, told in (
            (name, _user_answers(users, name)) for name in sorted(names)
        )
    ]
    rows.sort(key=lambda row: -row[1])
    count = sum(map(len, vms.values()))
    head = ', '.join(
        wording.counted(n, what)
        for n, what in (
            (len(users), 'host'),
            (len(rows), 'user'),
            (count, 'VM'),
        )
    )
    lines = [head, *(f'{host}: {why}' for host, why in silent.items()), '']
    shown = ctl_tables.with_shadow_if_any(_TITLES, rows, users)
    return '\n'.join(
        [*lines, ctl_tables.align_columns(*shown) + _EXPLAINED, '']
    )


def _user_answers(users: Answers, name: str) -> list[Mapping[str, Any]]:
    return [
        said['users'][name] for said in users.values() if name in said['users']
    ]


def _display_name(
    vms: Sequence[Mapping[str, Any]], entity: str, name: str
) -> str:
    """Return the name of a user or project if a VM has it, otherwise the
    ID.
    """
    return next((vm[f'{entity}_name'] for vm in vms), name)


def _row(
    shown: str,
    told: Sequence[Mapping[str, Any]],
    shadow: float | None,
    vms: Sequence[Mapping[str, Any]],
) -> Sequence[Any]:
    weights = [
        vm['weight_ratios']['cpu']
        for vm in vms
        if 'cpu' in vm['weight_ratios']
    ]
    return [
        shown,
        max(one['heaviness_quotas'] or 0.0 for one in told),
        shadow,
        *(_percent(told, resource) for _, resource in _COLUMNS),
        len(vms),
        sum(any(vm['wanting'].values()) for vm in vms),
        _range(weights),
    ]


def _percent(told: Sequence[Mapping[str, Any]], resource: str) -> str | None:
    """Return the largest reported use of a resource in percent of the quota,
    as text.

    Every host adds up the nodes in its view, so the largest sum is the most
    complete.
    """
    parts = [one['usage_quotas'].get(resource) for one in told]
    known = [part for part in parts if part is not None]
    return f'{100 * max(known):.0f}%' if known else None


def _range(weights: Sequence[float]) -> str | None:
    if not weights:
        return None
    low, high = min(weights), max(weights)
    return f'{low:.2f}' if high - low < 0.01 else f'{low:.2f}-{high:.2f}'
