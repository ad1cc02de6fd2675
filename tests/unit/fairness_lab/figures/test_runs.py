# SPDX-License-Identifier: Apache-2.0

import io
import itertools

import hypothesis
from hypothesis import strategies
from matplotlib import image
import pytest

from fairness_lab.figures import labels
from fairness_lab.figures import panel
from fairness_lab.figures import runs
from fairness_lab.results import result
from fairness_lab.results import series
from fairness_lab.results import timeline
from tests.unit.fairness_lab.results import fake_run


def side(**changes):
    run = fake_run.one_node_cpu(**{'duration_s': 40.0, **changes})
    points = tuple(series.points(timeline.Timeline(run)))
    return panel.PanelSide('title', result.build(run), points)


@pytest.mark.parametrize(
    'changes',
    [
        {},
        {'agents': False},
        {'events': [(9.0, 'freeze', 'b1'), (20.0, 'thaw', 'b1')]},
        {'events': [(float(n), 'note', '') for n in range(1, 30)]},
        {
            'vms': {f'v{n}': f'u{n}' for n in range(12)},
            'demand': [(0.0, f'v{n}', 0.5) for n in range(12)],
        },
        {'demand': []},
        {
            'events': [
                (3.0 * n, ('agents_stopped', 'agents_started')[n % 2], '')
                for n in range(12)
            ]
        },
    ],
)
def test_a_run_is_drawn(changes):
    drawn = image.imread(io.BytesIO(runs.run(side(**changes))))
    assert drawn.shape[0] > 600
    assert drawn[..., :3].std() > 0.05


def test_two_runs_are_drawn_side_by_side():
    drawn = runs.comparison(side(agents=False), side())
    assert image.imread(io.BytesIO(drawn)).shape[1] > 1000


@hypothesis.given(
    strategies.lists(strategies.floats(0, 100), max_size=12),
    strategies.floats(0.1, 10),
)
def test_labels_of_curves_do_not_overlap_and_keep_their_sequence(places, gap):
    moved = labels.spread_places(sorted(places), gap)
    assert len(moved) == len(places)
    for lower, upper in itertools.pairwise(moved):
        assert upper - lower >= gap - 1e-6


def test_labels_of_curves_with_enough_room_do_not_move():
    assert labels.spread_places([1.0, 5.0, 9.0], 2.0) == [1.0, 5.0, 9.0]


def test_curves_of_equal_style_share_a_legend_line():
    given = [
        labels.Label(10.0, 'b', 'red', 8),
        labels.Label(10.2, 'a', 'red', 8),
        labels.Label(10.1, 'c', 'blue', 8),
        labels.Label(50.0, 'd', 'red', 8),
    ]
    joined = labels.join_overlapping(given, 4.0)
    assert {label.text for label in joined} == {'a, b', 'c', 'd'}
    assert joined[-1].text == 'd'


def test_equal_consecutive_fair_shares_are_drawn_as_one_line():
    stretches = panel._fair_periods(
        side(events=[(20.0, 'freeze', 'b1')], duration_s=40.0)
    )
    assert stretches == [
        (0.0, 20.0, 50.0),
        (20.0, 40.0, 0.0),
        (20.0, 40.0, 100.0),
    ]
