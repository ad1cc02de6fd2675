# SPDX-License-Identifier: Apache-2.0

"""The scenario ``one-node-memory``: waits for pages when memory is short.

Boots a machine with control groups v2 alone and swap in compressed memory
(``tests/fixtures/v2_guest``) and starts in it, under libvirt and systemd, the
VMs of two users that fit alone and not together: the light one touches few
pages now and then, the heavy one many pages all the time. Their guests are
bare programs that do nothing but touch pages, since an operating system would
take too long to boot in a machine that is emulated itself; QEMU, its groups
and the agent are those of a compute node. Each runs alone first; then both
run, with an agent that only looks on; then with one that steers memory.

The result is the number of pages that each VM waited for, ``pgmajfault`` in
the ``memory.stat`` of its group. Holds if the light user waits with the agent
at most twice as often as alone, and the heavy user at least ten times as often
as alone. Less than one page in a second counts as one. A page that was taken
comes back when it is touched, so the first two minutes of both do not count.

Run as root, on a machine that does nothing else, about nine minutes::

    python -m benchmarks.agent.memory_v2 --out benchmarks/results/memory_v2

Writes ``result.json`` and ``run.png``; exit code 1 if it does not hold.
"""

import argparse
import itertools
import json
import pathlib
import sys
from typing import Any

from fairness_lab.figures import style
from nova_fairness.model import defaults
from tests.fixtures.v2_guest import machine

COMMAND = (
    'python -m benchmarks.agent.memory_v2 --out benchmarks/results/memory_v2'
)
PHASES = 'benchmarks.agent.memory_v2_phases'
MIB = 1 << 20
USERS = ('light', 'heavy')
BARS = {'light_at_most': 2.0, 'heavy_at_least': 10.0}
LEAST_RATE = 1.0
"""Pages per second: what is less counts as this, so that one page more in a
minute is not thought to be twice as many."""

TIMEOUT_S = 3600.0


def main() -> int:
    """Run, evaluate, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--seconds', type=float, default=30.0)
    parser.add_argument('--settle', type=float, default=120.0)
    parser.add_argument('--interval', type=float, default=2.0)
    parser.add_argument('--metric', default=defaults.METRIC)
    parser.add_argument('--node-mib', type=int, default=320)
    parser.add_argument('--light-mib', type=int, default=128)
    parser.add_argument('--heavy-mib', type=int, default=288)
    parser.add_argument('--light-rate', type=int, default=4000)
    parser.add_argument('--heavy-rate', type=int, default=20000)
    parser.add_argument(
        '--redraw', action='store_true', help='draw the figures of --out again'
    )
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.redraw:
        result = json.loads((options.out / 'result.json').read_text())
    else:
        result = evaluated(options, run_in_machine(options))
        text = json.dumps(result, indent=1) + '\n'
        (options.out / 'result.json').write_text(text)
    (options.out / 'run.png').write_bytes(picture(result))
    print(json.dumps(result['summary'], indent=1))
    return 0 if result['passed'] else 1


def run_in_machine(options: argparse.Namespace) -> dict[str, Any]:
    """Run the scenario in the machine."""
    with machine.running() as guest:
        out = guest.exchange / 'measured.json'
        chosen = [
            f'--{name.replace("_", "-")}={value}'
            for name, value in vars(options).items()
            if name not in ('out', 'redraw')
        ]
        done = guest.run(
            [
                *(sys.executable, '-m', PHASES),
                *(f'--out={out}', *chosen),
            ],
            TIMEOUT_S,
            lambda text: print(text, end='', flush=True),
        )
        if done.code:
            raise SystemExit(f'the run failed with exit code {done.code}')
        found: dict[str, Any] = json.loads(out.read_text())
        return found


def evaluated(
    options: argparse.Namespace, found: dict[str, Any]
) -> dict[str, Any]:
    """Compare what each user waited for with its run alone."""
    rates = {
        phase['name']: phase['major_faults_per_s'] for phase in found['phases']
    }
    summary = {
        user: {
            'alone_per_s': round(rates[f'{user} alone'][user], 2),
            'without_agent_per_s': round(
                rates['both, without agent'][user], 2
            ),
            'with_agent_per_s': round(rates['both, with agent'][user], 2),
            'without_agent_ratio': wait_ratio(rates, user, 'without'),
            'with_agent_ratio': wait_ratio(rates, user, 'with'),
        }
        for user in USERS
    }
    low = found['memory_low']
    passed = (
        summary['light']['with_agent_ratio'] <= BARS['light_at_most']
        and summary['heavy']['with_agent_ratio'] >= BARS['heavy_at_least']
        and low['after_stop'] == low['found']
    )
    return {
        'scenario': 'one-node-memory',
        'command': COMMAND,
        'options': {
            name: value
            for name, value in vars(options).items()
            if name not in ('out', 'redraw')
        },
        'guests': 'bare programs that touch pages, in QEMU under libvirt',
        'summary': summary,
        'least_rate_per_s': LEAST_RATE,
        'bars': BARS,
        'passed': passed,
        **found,
    }


def wait_ratio(
    rates: dict[str, dict[str, float]], user: str, how: str
) -> float:
    """How many times as many pages a user waited for as alone."""
    together = max(rates[f'both, {how} agent'][user], LEAST_RATE)
    return round(together / max(rates[f'{user} alone'][user], LEAST_RATE), 2)


TITLES = {
    'heavy alone': 'heavy\nalone',
    'light alone': 'light\nalone',
    'both, without agent': 'both, no agent steers',
    'both, with agent': 'both, the agent steers',
}


def picture(result: dict[str, Any]) -> bytes:
    """Draw faults and memory over time, phase by phase."""
    drawn = style.figure(11, 7)
    upper, lower = drawn.subplots(2, 1, sharex=True)
    summary = result['summary']
    style.write_headline(
        drawn,
        'Too little memory for two: with the agent the light user waits as'
        ' when alone'
        if result['passed']
        else 'Too little memory for two',
    )
    style.write_title(upper, 'Pages that a user waits for, per second')
    style.write_title(lower, 'Memory in use, MiB; dotted: spared (memory.low)')
    began, ticks, names = 0.0, [], []
    colours = style.colours(USERS)
    for phase in result['phases']:
        length = draw_phase(upper, lower, phase, began, colours)
        ticks.append(began + length / 2)
        names.append(TITLES[phase['name']])
        began += length
        for axes in (upper, lower):
            axes.axvline(began, color=style.QUIET, lw=0.8)
    upper.set_yscale('symlog', linthresh=1)
    upper.set_ylim(0, 10**4.3)
    upper.set_yticks([0, 1, 10, 100, 1000, 10000])
    upper.set_yticklabels(['0', '1', '10', '100', '1000', '10 000'])
    lower.set_xlim(0, began)
    lower.set_ylim(0, 1.15 * lower.get_ylim()[1])
    lower.set_xticks(ticks, names)
    for axes in (upper, lower):
        axes.tick_params(axis='x', length=0)
    for axes in (upper, lower):
        style.remove_ornaments(axes)
    style.write_note(
        upper,
        'with the agent: light x {:g} of alone (bar: at most {:g}), '
        'heavy x {:g} (at least {:g})'.format(
            summary['light']['with_agent_ratio'],
            BARS['light_at_most'],
            summary['heavy']['with_agent_ratio'],
            BARS['heavy_at_least'],
        ),
    )
    return style.to_png(drawn)


def draw_phase(
    upper: style.Axes,
    lower: style.Axes,
    phase: dict[str, Any],
    began: float,
    colours: dict[str, str],
) -> float:
    """Draw one phase from a place on the axis; give its length, seconds."""
    samples = phase['samples']
    first = samples[0]['at_s']
    places = [began + item['at_s'] - first for item in samples]
    for user, mean in phase['major_faults_per_s'].items():
        colour = colours[user]
        steps = [
            (after['faults'][user] - before['faults'][user])
            / (after['at_s'] - before['at_s'])
            for before, after in itertools.pairwise(samples)
        ]
        upper.plot(places[1:], steps, color=colour, lw=1, alpha=0.5)
        counted = [began + phase['settle_s'], places[-1]]
        upper.plot(counted, [mean, mean], color=colour, lw=3)
        first_user = user == USERS[0]
        upper.annotate(
            f'{user} {mean:.{0 if mean >= 10 else 1}f}',
            (counted[0 if first_user else 1], mean),
            xytext=(4 if first_user else -4, 5),
            textcoords='offset points',
            ha='left' if first_user else 'right',
            color=colour,
            fontsize=style.LARGE,
            fontweight='bold',
        )
        held = [item['resident'][user] / MIB for item in samples]
        lower.plot(places, held, color=colour, lw=2)
        spared = [item['protected'][user] / MIB for item in samples]
        if any(spared):
            lower.plot(places, spared, color=colour, lw=1.5, ls=':')
        lower.annotate(
            user,
            (places[-1], held[-1]),
            xytext=(-4, 5),
            textcoords='offset points',
            ha='right',
            color=colour,
            fontsize=style.LARGE,
        )
    return float(places[-1] - began)


if __name__ == '__main__':
    sys.exit(main())
