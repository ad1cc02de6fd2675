# SPDX-License-Identifier: Apache-2.0

"""Pictures and pages of simulated runs."""

import csv
import dataclasses
import io
import re

from matplotlib import image
import numpy as np
import pytest

from fairness_lab.figures import compare_simulated
from fairness_lab.figures import page as report
from fairness_lab.figures import simulated
from fairness_lab.figures import style
from fairness_lab.measures import series as series_module
from nova_fairness import exception
from tests.unit.fairness_lab.measures import test_measures as small


def result(scenario='small', policy='feedback', **measures):
    """A result like that of a run."""
    shares = [small.UNFAIR] * 4 + [small.FAIR] * 16
    found = {**small.judged(shares), **measures}
    found.pop('series')
    return {
        'scenario': scenario,
        'metric': 'DominantShareMetric',
        'policy': policy,
        'measures': found,
    }


def tables(users=2):
    """Series with so many users."""
    found = small.judged([small.UNFAIR] * 4 + [small.FAIR] * 16)['series']
    if users > 2:
        table = found['ideals']
        rows = [row for row in table['rows'] if row[2] == 'a']
        table['rows'] = [
            [*row[:2], f'user-{number:03}', *row[3:]]
            for row in rows
            for number in range(users)
        ]
    return found


def written(directory, series):
    for name, table in series.items():
        with (directory / f'{name}.csv').open('w', newline='') as stream:
            writer = csv.writer(stream)
            writer.writerow(table['columns'])
            writer.writerows(
                ['' if item is None else item for item in row]
                for row in table['rows']
            )
    return directory


def pixels(picture):
    """Read an image, as an array of colours."""
    return image.imread(io.BytesIO(picture))


@pytest.mark.repeated
@pytest.mark.parametrize(
    'users', [2, 30, pytest.param(7, marks=pytest.mark.slow)]
)
def test_a_run_is_drawn_for_any_number_of_users(tmp_path, users):
    series = series_module.read(written(tmp_path, tables(users)))
    drawn = pixels(
        simulated.run(simulated.SimulatedRun('t', result(), series))
    )
    assert drawn.shape[0] > 500
    assert np.unique(drawn.reshape(-1, drawn.shape[2]), axis=0).shape[0] > 20


def test_a_run_without_series_is_drawn(tmp_path):
    series = series_module.read(tmp_path)
    assert pixels(
        simulated.run(simulated.SimulatedRun('t', result(), series))
    ).size


def test_files_of_a_run_need_no_network(tmp_path):
    report.write_run(tmp_path, result(), written(tmp_path, tables()))
    page = (tmp_path / 'report.html').read_text(encoding='utf-8')
    assert (tmp_path / 'run.png').read_bytes().startswith(b'\x89PNG')
    assert re.findall(r'(?:src|href)="(?!data:image/png;base64,)', page) == []
    assert 'http' not in page.replace('http-equiv', '')


def test_a_page_describes_the_run_and_its_words():
    found = {
        **result(),
        'description': 'Two users on one node.',
        'package_version': '1.2.3',
        'seed': 42,
        'parameters': {'part': 0.7},
        'agents': {'max_weight_ratio': 20.0, 'reports': {'loss': 0.1}},
    }
    page = report.page('t', [found, {**found, 'policy': 'none'}], [])
    for said in (
        'Two users on one node.',
        '<dt>version of nova-fairness</dt><dd>1.2.3</dd>',
        '<dt>seed of random numbers</dt><dd>42</dd>',
        '<dt>parameter part of the policy</dt><dd>0.7</dd>',
        '<dt>largest by smallest weight</dt><dd>20</dd>',
        '<dd>loss 0.1</dd>',
    ):
        assert page.count(said) == 1, said
    known = {word for word, _ in report.MEANINGS}
    for word in ('overshoot', 'oscillation', 'weight swing', 'settled'):
        assert word in known
        assert f'<dt>{word}</dt>' in page


@pytest.mark.parametrize(
    ('users', 'vms', 'expected'),
    [(2, 1, {'a-0', 'b-0'}), (2, 9, {'a', 'b'}), (30, 1, set())],
)
def test_curves_of_weights_have_names(users, vms, expected):
    rows = [
        {
            'round': str(number),
            'user': user,
            'vm': f'{user}-{vm}',
            'cpu': str(1 + number + vm),
        }
        for user in 'abcdefghijklmnopqrstuvwxyzABCD'[:users]
        for vm in range(vms)
        for number in range(3)
    ]
    series = dataclasses.replace(series_module.NOTHING, weights=rows)
    axes = style.figure(4, 3).add_subplot()
    simulated.draw_weights(axes, series)
    texts = [text.get_text() for text in axes.texts]
    named = {name for text in texts for name in text.split(', ')}
    assert named - {'a curve per VM'} == expected


def test_names_cannot_break_a_page(tmp_path):
    found = result(scenario='<script>alert(1)</script>')
    page = report.page(report.headline(found), [found], [])
    assert '<script>' not in page
    assert '&lt;script&gt;' in page


def test_runs_are_compared_with_and_without_series(tmp_path):
    series = written(tmp_path, tables())
    runs = [result(policy='feedback'), result(policy='none')]
    report.write_compare(tmp_path, runs, [series, series])
    with_lines = pixels((tmp_path / 'compare.png').read_bytes())
    report.write_compare(tmp_path, runs)
    without = pixels((tmp_path / 'compare.png').read_bytes())
    assert with_lines.shape[0] > without.shape[0]
    page = (tmp_path / 'report.html').read_text(encoding='utf-8')
    assert 'no agent steers' in page


def lacking(policy, value):
    measures = {'bounded': {'worst': {'settled': value}}}
    return {**result(policy=policy), 'metric': 'M', 'measures': measures}


@pytest.mark.parametrize(
    ('value', 'verdict'),
    [(0.03, ', which is good'), (0.1, ''), (0.3, ', which is poor')],
)
def test_a_page_concludes_the_lack_of_the_worst_user(value, verdict):
    [told] = report._conclusions([lacking('feedback', value)])
    assert told.endswith(
        f'with feedback, M the worst user lacks {value:.1%} of the ideal once'
        f' settled{verdict}'
    )


def test_a_comparison_concludes_which_run_is_best():
    runs = [lacking('feedback', 0.03), lacking('thesis', 0.2)]
    page = report.page('t', runs, [])
    assert page.count('<h2>Conclusion</h2>') == 1
    assert (
        'the worst user lacks least with feedback, M (3.0% of the ideal) and'
        ' most with thesis, M (20.0%)'
    ) in page


def test_numbers_in_cells_do_not_wrap():
    page = report.page('t', [lacking('feedback', 0.03)], [])
    assert 'td { white-space: nowrap; }' in page


def test_an_unknown_number_is_a_dash():
    found = result(rounds_to_within_5_percent=None, overshoot=0.3)
    page = report.page('t', [found], [])
    assert '<td class="">-</td>' in page
    assert '<td class="poor">30.0%</td>' in page


@pytest.mark.parametrize(
    ('value', 'expected'),
    [(None, ''), (0.01, 'good'), (0.15, ''), (0.3, 'poor')],
)
def test_a_page_judges_quantities(value, expected):
    assert compare_simulated.QUANTITIES[0].judge(value) == expected


def test_a_series_that_is_no_text_is_named(tmp_path):
    (tmp_path / 'ideals.csv').write_bytes(b'round\n\xff\xfe')
    with pytest.raises(exception.BadSeries, match=r'ideals\.csv'):
        series_module.read(tmp_path)


def test_an_empty_cell_of_a_series_is_unknown():
    rows = [{'round': '0', 'share': ''}, {'round': '1', 'share': '0.5'}]
    x, y = series_module.curve(rows, 'share')
    assert x == [0.0, 1.0]
    assert np.isnan(y[0])
    assert y[1] == 0.5
