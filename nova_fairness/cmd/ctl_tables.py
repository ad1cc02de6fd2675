# SPDX-License-Identifier: Apache-2.0

"""Tables for a terminal, from answers of agents and lists of keys."""

import collections
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import math
from typing import Any

from nova_fairness.model import wording

Answers = Mapping[str, Any]
Rows = Sequence[Sequence[Any]]

_NOTHING = '-'

SHADOW = 'SHADOW'
"""Title of the column of the shadow metric."""


def table(command: str, answers: Answers) -> str:
    """Format the answers to a command as a table.

    :param command: command of ``nova-fairness-ctl``.
    :param answers: answers by host, at least one.
    :returns: lines; the first line has the names of the columns.
    """
    titles, rows = _FORMS[command]
    return align_columns(*with_shadow_if_any(titles, rows(answers), answers))


def shadow_metric(answers: Answers) -> str:
    """Return the shadow metric of most hosts, the first by name of equals;
    empty if no host has one.

    Numbers of different metrics are not comparable.
    """
    names = [said.get('shadow_metric', '') for said in answers.values()]
    names += [
        (said.get('shadow') or {}).get('metric', '')
        for said in answers.values()
    ]
    counts = collections.Counter(filter(None, names))
    return min(counts, key=lambda name: (-counts[name], name), default='')


def with_shadow_if_any(
    titles: Sequence[str], rows: Rows, answers: Answers
) -> tuple[Sequence[str], Rows]:
    """Return titles and rows without the column of the shadow metric if no
    host has one.
    """
    if SHADOW not in titles or shadow_metric(answers):
        return titles, rows
    place = list(titles).index(SHADOW)
    titles, *rows = (
        [*row[:place], *row[place + 1 :]] for row in (titles, *rows)
    )
    return titles, rows


def largest_shadow(answers: Answers, kind: str, name: str) -> float | None:
    """Return the largest heaviness of an owner by the shadow metric.

    :param kind: ``users`` or ``projects``.
    """
    return max(_shadows(answers, kind, name), default=None)


def _shadows(answers: Answers, kind: str, name: str) -> list[float]:
    shadow = shadow_metric(answers)
    told = [
        said[kind].get(name, {}).get('shadow_heaviness_quotas')
        for said in answers.values()
        if said.get('shadow_metric') == shadow
    ]
    return [number for number in told if number is not None]


def explanation(answers: Answers, *, everything: bool) -> str:
    """Explain the weights of a VM in sentences.

    :param answers: answers by host, at least one.
    :param everything: whether numbers and a table are added.
    """
    return '\n'.join(
        _why_text(host, said['instance'], everything=everything)
        for host, said in answers.items()
    )


def align_columns(titles: Sequence[str], rows: Rows) -> str:
    """Return the lines of a table: numbers are aligned right, texts left."""
    texts = [[_text(item) for item in row] for row in rows]
    numeric = [
        bool(texts) and all(_is_number(row[place]) for row in texts)
        for place in range(len(titles))
    ]
    return wording.format_table([titles, *texts], numeric)


def _text(item: Any) -> str:
    if item is None or item == '':
        return _NOTHING
    if isinstance(item, bool):
        return 'yes' if item else 'no'
    if isinstance(item, float):
        return f'{item:.3f}'
    # A user may choose any name: it must not control the terminal.
    return ''.join(c if c.isprintable() else '?' for c in str(item))


def _is_number(text: str) -> bool:
    return (
        text == _NOTHING
        or text.rstrip('%').replace('.', '', 1).lstrip('-').isdigit()
    )


def _choice_rows(answers: Answers) -> Rows:
    return [
        [
            host,
            said['metric'],
            said['policy'],
            said['epoch'],
            said['from_round'],
        ]
        for host, said in answers.items()
    ]


def _pause_rows(answers: Answers) -> Rows:
    return [
        [host, said['paused'], said['from_round'], said['persistent']]
        for host, said in answers.items()
    ]


def _reset_rows(answers: Answers) -> Rows:
    return [[host, said['from_round']] for host, said in answers.items()]


def _preference_rows(answers: Answers) -> Rows:
    return [
        [
            host,
            said['preferences_count'],
            said['from_round'],
            said['persistent'],
        ]
        for host, said in answers.items()
    ]


def _status_rows(answers: Answers) -> Rows:
    return [_status_row(host, said) for host, said in answers.items()]


def _status_row(host: str, said: Mapping[str, Any]) -> Sequence[Any]:
    done = said['round'] or {}
    duration_s = done.get('duration_s')
    peers = said['peers'].values()
    used = sum(peer['left_out'] is None for peer in peers)
    return [
        host,
        _state(said),
        said['metric'],
        (said.get('shadow') or {}).get('metric'),
        said['policy'],
        said['epoch'],
        ' '.join(
            name for name, told in said['controls'].items() if told['works']
        ),
        done.get('number'),
        None if duration_s is None else f'{duration_s * 1000:.1f}',
        done.get('instances_count'),
        done.get('users_count'),
        f'{used}/{len(peers)}',
        '; '.join(_problems(said)),
    ]


def _state(said: Mapping[str, Any]) -> str:
    if said['paused']:
        return 'paused'
    return 'enforces' if said['enforce'] else 'observes'


def _problems(said: Mapping[str, Any]) -> list[str]:
    problems = [f'{name} is in quarantine' for name in said['quarantined']]
    if said.get('warning'):  # agents before 1.3 do not send it
        problems.append(said['warning'])
    if said['refused']:
        problems.append(f'metric and policy not accepted: {said["refused"]}')
    if said['desired'].get('problem'):
        problems.append(said['desired']['problem'])
    if (shadow := said.get('shadow') or {}).get('problem'):
        problems.append(
            f'shadow metric {shadow["metric"]}: {shadow["problem"]}'
        )
    problems.extend(said.get('unsaved', ()))
    problems.extend((said['round'] or {}).get('errors', ()))
    return problems


def _instance_rows(answers: Answers) -> Rows:
    return [
        [
            host,
            vm['name'],
            vm['uuid'],
            vm['user_name'],
            vm['heaviness_quotas'],
            vm.get('shadow_heaviness_quotas'),
            vm['wanting'].get('cpu'),
            vm['weight_ratios'].get('cpu'),
            vm['applied_units'].get('cpu'),
        ]
        for host, said in answers.items()
        for vm in said['instances']
    ]


def _user_rows(answers: Answers) -> Rows:
    """Return rows of users from the answers of all nodes, the heaviest first.

    Every node reports the heaviness over all nodes in its view.
    """
    names = sorted(
        {user for said in answers.values() for user in said['users']}
    )
    rows = [_user_row(name, answers) for name in names]
    return sorted(rows, key=lambda row: -row[1])


def _project_rows(answers: Answers) -> Rows:
    """Return rows of projects from the answers of all nodes, the heaviest
    first.

    If agents compare users, each node counts only its own VMs.
    """
    rows: dict[str, list[Any]] = {}
    for said in answers.values():
        for name, one in said['projects'].items():
            row = rows.setdefault(name, [name, said['scope'], 0.0, None, 0])
            heaviness = one['heaviness_quotas'] or 0.0
            is_part = said['scope'] == 'host'
            row[2] = row[2] + heaviness if is_part else max(row[2], heaviness)
            row[4] += one['instances_here_count']
    for row in rows.values():
        shadows = _shadows(answers, 'projects', row[0])
        combine = sum if row[1] == 'host' else max
        row[3] = combine(shadows) if shadows else None
    return sorted(rows.values(), key=lambda row: (-row[2], row[0]))


def _plugin_rows(answers: Answers) -> Rows:
    """Return rows of installed plugins, with the number of nodes that have
    each.
    """
    hosts: dict[tuple[str, str, str], int] = {}
    for said in answers.values():
        for kind, key in (('metric', 'metrics'), ('policy', 'policies')):
            for item in said[key]:
                row = (kind, item['name'], item['description'])
                hosts[row] = hosts.get(row, 0) + 1
    return [
        [kind, name, f'{count}/{len(answers)}', description]
        for (kind, name, description), count in sorted(hosts.items())
    ]


def _user_row(name: str, answers: Answers) -> Sequence[Any]:
    told = [
        said['users'][name]
        for said in answers.values()
        if name in said['users']
    ]
    used: dict[str, float] = {}
    for one in told:
        for resource, part in one['usage_quotas'].items():
            used[resource] = max(used.get(resource, 0.0), part or 0.0)
    most = max(used, key=lambda resource: used[resource], default='')
    return [
        name,
        max((one['heaviness_quotas'] or 0.0) for one in told),
        largest_shadow(answers, 'users', name),
        sum(one['instances_here_count'] for one in told),
        most,
        used.get(most),
    ]


_WHY = (
    'HOST',
    'RESOURCE',
    'HEAVINESS',
    'USES',
    'ENDOWED',
    'OWNER USES',
    'QUOTA',
    'CONTENDED',
    'WAITS',
)


def _why_text(host: str, vm: Mapping[str, Any], *, everything: bool) -> str:
    """Return the sentences about a VM, and numbers on demand."""
    lines = [f'{_vm_title(vm)}, on {host}:', *vm['advice']]
    if everything:
        lines += ['', *_why_numbers(vm), '']
    text = ''.join(f'{_text(line) if line else ""}\n' for line in lines)
    if not everything:
        return text
    rows = [[host, *_why_row(vm, name)] for name in _resource_names(vm)]
    return text + align_columns(_WHY, rows)


def _vm_title(vm: Mapping[str, Any]) -> str:
    """Return the name and UUID of a VM, with the names of its user and project
    if known.
    """
    user = vm.get('user_name', vm['user_id'])
    project = vm.get('project_name', vm['project_id'])
    return f'{vm["name"]} ({vm["uuid"]}) of {user} in {project}'


def _why_numbers(vm: Mapping[str, Any]) -> Iterator[str]:
    total = vm['heaviness']['total']
    heaviness = '-' if total is None else f'{total:.3f}'
    yield f'heaviness: {heaviness} ({vm["metric"]})'
    if (shadow := vm['heaviness'].get('shadow')) is not None:
        name = vm['heaviness'].get('shadow_metric')
        yield f'shadow heaviness: {shadow:.3f} ({name})'
    if vm['weights']:
        yield 'weights: ' + ' '.join(
            f'{name}={weight:.3f}' for name, weight in vm['weights'].items()
        )


def _resource_names(vm: Mapping[str, Any]) -> list[str]:
    return list(vm['usage'] or vm['heaviness']['by_resource'])


def _why_row(vm: Mapping[str, Any], name: str) -> list[Any]:
    return [
        name,
        vm['heaviness']['by_resource'].get(name),
        *(
            _short_amount(vm[amounts].get(name))
            for amounts in ('usage', 'endowment', 'owner_usage', 'quota')
        ),
        name in vm['contended'],
        name in vm['waiting'],
    ]


def _short_amount(amount: float | None) -> str | None:
    """Format an amount with a prefix that shortens it, such as ``1.50G``."""
    if amount is None:
        return None
    for step, letter in ((1e9, 'G'), (1e6, 'M'), (1e3, 'k')):
        if amount >= step:
            return f'{amount / step:.2f}{letter}'
    return f'{amount:.2f}'


_PREVIEW = ('GETS', 'WANTS', 'WOULD GET', 'CHANGE', 'SPREAD')
_AMOUNTS = ('gets_cpus', 'wants_cpus', 'would_get_cpus', 'change_cpus')
_SPREAD = 'change_spread_cpus'
_FORESEEN = (
    'Numbers are CPUs, averaged over the last minutes, with the present '
    'policy. A change below its spread is noise. Nothing was changed.'
)


def preview(answers: Answers, *, everything: bool) -> str:
    """Format forecasts: gains and losses of users or VMs, by metric.

    :param answers: answers by host, at least one.
    :param everything: whether each VM is shown instead of sums by user.
    """
    if everything:
        text = align_columns(
            ('METRIC', 'HOST', 'NAME', 'UUID', 'USER', *_PREVIEW, 'WEIGHT'),
            _previewed_instances(answers),
        )
    else:
        text = align_columns(
            ('METRIC', 'USER', 'VMS', *_PREVIEW), _previewed_users(answers)
        )
    notes = dict.fromkeys(_preview_notes(answers))
    return text + ''.join(f'{_text(line)}\n' for line in (_FORESEEN, *notes))


def _forecasts(answers: Answers) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """Return pairs of a host and its forecast for a metric, sorted by
    metric.
    """
    told = [
        (host, one)
        for host, said in answers.items()
        for one in said['metrics']
    ]
    return sorted(told, key=lambda item: (item[1]['metric'], item[0]))


def _previewed_users(answers: Answers) -> Rows:
    """Return the sums over all hosts by user; the largest loss is first."""
    rows: dict[tuple[str, str], list[Any]] = {}
    for _, one in _forecasts(answers):
        for user, told in one['users'].items():
            new = [one['metric'], told['name'], 0, *(0.0,) * len(_PREVIEW)]
            row = rows.setdefault((one['metric'], user), new)
            row[2] += told['instances_here_count']
            for place, key in enumerate(_AMOUNTS, 3):
                row[place] += told[key]
            row[-1] = _sum_of_spreads(row[-1], told.get(_SPREAD))
    return sorted(rows.values(), key=lambda row: (row[0], row[-2]))


def _sum_of_spreads(one: float | None, other: float | None) -> float | None:
    """Return the spread of a sum of two independent changes."""
    return None if one is None or other is None else math.hypot(one, other)


def _previewed_instances(answers: Answers) -> Rows:
    rows = [
        [
            one['metric'],
            host,
            vm['name'],
            vm['uuid'],
            vm['user_name'],
            *(vm[key] for key in _AMOUNTS),
            vm.get(_SPREAD),
            vm['weight_ratio'],
        ]
        for host, one in _forecasts(answers)
        for vm in one['instances']
    ]
    return sorted(rows, key=lambda row: (row[0], row[-3]))


def _preview_notes(answers: Answers) -> Iterator[str]:
    """Yield reasons why the numbers are less reliable."""
    for host, said in answers.items():
        if said['enforced']:
            yield f'{host}: already enforces weights.'
        if said['not_foreseen']:
            names = ', '.join(said['not_foreseen'])
            yield f'{host}: VMs also compete for {names}: not in the preview.'
    for host, one in _forecasts(answers):
        if one['problem']:
            yield f'{host}: no preview of {one["metric"]}: {one["problem"]}.'
        elif not one['settled']:
            yield f'{host}: weights by {one["metric"]} never become constant.'


_CHOICE = ('HOST', 'METRIC', 'POLICY', 'EPOCH', 'FROM ROUND')
_PAUSE = ('HOST', 'PAUSED', 'FROM ROUND', 'AFTER RESTART TOO')

_FORMS: Mapping[str, tuple[Sequence[str], Callable[[Answers], Rows]]] = {
    'set-metric': (_CHOICE, _choice_rows),
    'set-policy': (_CHOICE, _choice_rows),
    'pause': (_PAUSE, _pause_rows),
    'resume': (_PAUSE, _pause_rows),
    'reset': (('HOST', 'FROM ROUND'), _reset_rows),
    'prefer': (
        ('HOST', 'PREFERENCES', 'FROM ROUND', 'AFTER RESTART TOO'),
        _preference_rows,
    ),
    'status': (
        (
            'HOST',
            'STATE',
            'METRIC',
            SHADOW,
            'POLICY',
            'EPOCH',
            'STEERS',
            'ROUND',
            'MS',
            'VMS',
            'USERS',
            'PEERS',
            'PROBLEMS',
        ),
        _status_rows,
    ),
    'instances': (
        (
            'HOST',
            'NAME',
            'UUID',
            'USER',
            'HEAVINESS',
            SHADOW,
            'WANTS CPU',
            'CPU WEIGHT',
            'CPU UNITS',
        ),
        _instance_rows,
    ),
    'users': (
        ('USER', 'HEAVINESS', SHADOW, 'VMS', 'USES MOST', 'QUOTAS OF IT'),
        _user_rows,
    ),
    'projects': (
        ('PROJECT', 'SCOPE', 'HEAVINESS', SHADOW, 'VMS'),
        _project_rows,
    ),
    'plugins': (('KIND', 'NAME', 'HOSTS', 'DESCRIPTION'), _plugin_rows),
}
