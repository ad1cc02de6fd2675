# SPDX-License-Identifier: Apache-2.0

"""Pictures and pages of runs of the queue."""

import dataclasses
import io
import re

from matplotlib import image
import pytest

from fairness_lab.figures import queue
from fairness_lab.figures import queue_page
from fairness_lab.queue_sim import runs as runs_module
from nova_fairness import exception
from nova_fairness import version
from tests.unit.fairness_lab.queue_sim import small_clouds

ONE, WHOLE = small_clouds.ONE, small_clouds.WHOLE
REQUESTS = [(0, 0, WHOLE, 95), (5, 1, ONE, 20), (5, 0, ONE, 20)]


def ran(place, order='fifo', requests=REQUESTS, **more):
    """Run a small cloud in a new place; its result."""
    place.mkdir(parents=True)
    return runs_module.run(small_clouds.cloud(requests, **more), order, place)


def page_of(place, result):
    queue_page.write_run(place, result['order'], result)
    return (place / 'report.html').read_text('utf-8')


def height_and_width(picture):
    return image.imread(io.BytesIO(picture)).shape[:2]


def test_a_page_explains_its_terms(tmp_path):
    result = ran(tmp_path / 'a')
    page = page_of(tmp_path / 'a', result)
    for says in (
        '<h1>small, fifo</h1>',
        '<p>a test</p>',
        '<dt>seed of random numbers</dt><dd>0</dd>',
        f'<dd>{version.release()}</dd>',
        '<dt>half-life of use, seconds</dt><dd>100</dd>',
        '<dt>longest wait of a request, seconds</dt><dd>never</dd>',
        '<dd>MEMORY_MB 4096, VCPU 4</dd>',
        *(f'<dt>{word}</dt>' for word in ('entitled to', 'utilisation')),
    ):
        assert says in page, says
    assert not re.search(r'(src|href)="(?!data:)', page)


def test_numbers_of_a_page_are_those_of_the_result(tmp_path):
    result = ran(tmp_path / 'a')
    page = page_of(tmp_path / 'a', result)
    error = 100 * result['share_error']['mean']
    assert f'<td>{error:.1f} %</td>' in page
    assert f'<td>{result["waiting"]["longest_s"] / 3600:.2f} h</td>' in page


@pytest.mark.parametrize('requests', [REQUESTS, []])
def test_a_picture_drawn_twice_is_identical(tmp_path, requests):
    result = ran(tmp_path / 'a', requests=requests)
    pictures = []
    for _ in range(2):
        page_of(tmp_path / 'a', result)
        pictures.append((tmp_path / 'a' / 'run.png').read_bytes())
    assert pictures[0] == pictures[1]
    assert height_and_width(pictures[0]) == (1080, 1800)


def conclusions_of(page):
    _, _, rest = page.partition('<h2>Conclusion</h2>')
    return re.findall('<li>(.*)</li>', rest)


def judged(error, p95_s, scenario='small'):
    return {
        'scenario': scenario,
        'share_error': {'mean': error},
        'waiting': {'p95_s': p95_s},
    }


@pytest.mark.parametrize(
    ('error', 'word'), [(0.04, 'at most 5%'), (0.06, 'more than 5%')]
)
def test_a_page_concludes_whether_shares_are_kept(tmp_path, error, word):
    result = ran(tmp_path / 'a')
    result['share_error']['mean'] = error
    [told] = conclusions_of(page_of(tmp_path / 'a', result))
    assert told.startswith(f'small: the error of shares is {error:.1%}')
    assert word in told


def test_a_comparison_explains_a_shorter_wait_with_a_larger_error():
    fair, fifo = ('fair_tree', judged(0.02, 7200)), ('fifo', judged(0.3, 3600))
    shares, waits = queue_page._conclusions([fair, fifo])
    assert shares == (
        'small: the error of shares is least with fair_tree (2.0%) and largest'
        ' with fifo (30.0%)'
    )
    assert waits.startswith(
        'small: p95 of the waits is least with fifo (1.00 h), and its error of'
        ' shares is larger: where projects'
    )


def test_a_comparison_names_the_run_that_is_best_in_both():
    fair, fifo = ('fair_tree', judged(0.02, 3600)), ('fifo', judged(0.3, 7200))
    other = 'fifo', judged(None, None, 'other')
    _, waits = queue_page._conclusions([fair, fifo, other])
    assert waits.endswith('fair_tree (1.00 h), which divides best by shares,'
                          ' too')  # fmt: skip


def test_a_page_shows_lost_work_if_servers_are_preempted(tmp_path):
    result = ran(tmp_path / 'a')
    page = page_of(tmp_path / 'a', result)
    assert '<th>work lost</th>' not in page
    result['made_room'] = {'servers': 3, 'lost_part': 0.0125}
    page = page_of(tmp_path / 'a', result)
    assert '<th>work lost</th>' in page
    assert '<td>3</td><td>1.25 %</td>' in page


def test_names_cannot_break_the_page(tmp_path):
    result = ran(tmp_path / 'a')
    result['description'] = 'a <script>'
    assert 'a &lt;script&gt;' in page_of(tmp_path / 'a', result)


def test_a_picture_draws_some_of_many_users_and_counts_the_others(
    tmp_path, monkeypatch
):
    side = queue.read('fifo', ran(tmp_path / 'a'), tmp_path / 'a')
    many = [
        {**side.users[0], 'user': f'u{n}', 'mean_s': str(n), 'p95_s': str(n)}
        for n in range(100)
    ]
    notes = []
    monkeypatch.setattr(
        queue.style, 'note', lambda _, said: notes.append(said)
    )
    queue.run(dataclasses.replace(side, users=many))
    assert notes == ['20 of 100', 'line: entitled to']


def test_a_broken_table_is_refused_by_name(tmp_path):
    result = ran(tmp_path / 'a')
    (tmp_path / 'a' / 'users.csv').write_bytes(b'project\n\xff\n')
    with pytest.raises(exception.BadSeries, match=r'users\.csv'):
        page_of(tmp_path / 'a', result)


def test_a_comparison_links_to_the_pages_of_its_runs(tmp_path):
    runs = []
    for order in ('fifo', 'fair_tree'):
        result = ran(tmp_path / 'runs' / order, order)
        page_of(tmp_path / 'runs' / order, result)
        runs.append((order, {**result, 'directory': f'runs/{order}'}))
    runs[1][1]['scenario'] = 'other'
    queue_page.write_compare(tmp_path, runs)
    page = (tmp_path / 'report.html').read_text('utf-8')
    links = re.findall(r'href="([^"]*)"', page)
    assert len(links) == 2
    assert all((tmp_path / link).is_file() for link in links)
    clouds = re.findall('<h2>Cloud (.*)</h2>', page)
    assert clouds == ['small', 'other']


def test_a_value_that_is_zero_on_every_side_has_no_bars(tmp_path):
    side = queue.read('fifo', ran(tmp_path / 'a'), tmp_path / 'a')
    lost = dataclasses.replace(
        side, result={**side.result, 'made_room': {'lost_part': 0.1}}
    )
    without = height_and_width(queue.compare([side]))
    assert height_and_width(queue.compare([side, lost]))[0] > without[0]
