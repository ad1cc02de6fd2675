# SPDX-License-Identifier: Apache-2.0

"""What a run of the queue writes."""

import csv
import json
import pathlib

from fairness_lab.queue_sim import runs
from tests.fixtures import simulator_schemas
from tests.unit.fairness_lab.queue_sim import small_clouds

ONE, WHOLE = small_clouds.ONE, small_clouds.WHOLE
PAGE = (
    pathlib.Path(__file__).parents[4]
    / 'doc/source/reference/sim-cluster-result.rst'
)
TABLES = ('projects', 'series', 'sizes', 'users')


class Meter:
    def __init__(self):
        self.heard = []

    def begin(self, title, rounds):
        self.heard.append((title, rounds))

    def tick(self, done):
        self.heard.append(done)

    def end(self):
        self.heard.append('end')


def cloud():
    requests = [(0, 0, WHOLE, 95), (5, 1, ONE, 20), (5, 0, ONE, 20)]
    return small_clouds.cloud(requests, shares=(2.0, 1.0))


def test_a_queue_run_has_results_and_tables(tmp_path):
    result = runs.run(cloud(), 'fair_tree', tmp_path)
    assert json.loads((tmp_path / 'result.json').read_text()) == result
    simulator_schemas.validate(result, 'queue_sim', 'result')
    assert (result['version'], result['order']) == (1, 'fair_tree')
    assert result['capacity'] == {'MEMORY_MB': 4096, 'VCPU': 4}
    assert (result['projects'], result['users'], result['sizes']) == (2, 2, 2)
    assert result['requests']['ended'] == 3
    for name in TABLES:
        with (tmp_path / f'{name}.csv').open() as file:
            assert list(csv.DictReader(file))
    with (tmp_path / 'projects.csv').open() as file:
        assert [row['share'] for row in csv.DictReader(file)] == ['2', '1']


def test_every_column_is_described(tmp_path):
    text = PAGE.read_text('utf-8')
    result = runs.run(cloud(), 'fifo', tmp_path)
    names = []
    for name in TABLES:
        head = (tmp_path / f'{name}.csv').read_text().partition('\n')[0]
        names += set(head.split(',')) - set(result['waiting'])
    for name in {*names}:
        assert f'``{name}``' in text, name


def test_a_repeated_queue_run_writes_the_same_bytes(tmp_path):
    places = [tmp_path / 'a', tmp_path / 'b']
    for place in places:
        place.mkdir()
        runs.run(cloud(), 'multifactor', place)
    first, second = (
        {path.name: path.read_bytes() for path in place.iterdir()}
        for place in places
    )
    assert first == second
    assert len(first) == 1 + len(TABLES)


def test_a_meter_gets_the_progress_of_the_run(tmp_path):
    meter = Meter()
    runs.run(cloud(), 'fifo', tmp_path, meter)
    looks = len((tmp_path / 'series.csv').read_text().splitlines()) - 1
    assert meter.heard[0] == ('small, fifo', looks)
    assert meter.heard[1:] == [*range(1, looks + 1), 'end']
