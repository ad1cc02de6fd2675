# SPDX-License-Identifier: Apache-2.0

"""The ledger is worked out anew from what was charged, on a real store."""

import csv
import datetime as dt

import numpy as np
from pyarrow import parquet
import pytest

from nova_fairness import exception
from nova_fairness.cluster.usage import charge_log
from nova_fairness.cluster.usage import charging
from nova_fairness.cluster.usage import export
from nova_fairness.shares import ledger
from tests.unit.cluster import test_service
from tests.unit.cluster.usage import test_charging

HALF_LIFE_S = test_charging.HALF_LIFE_S
world = test_service.world
cloud = test_charging.cloud
process = test_charging.process


def later(world, process, seconds):
    world.now += seconds
    process.cycle()


def succeeding(world):
    """Another process, which leads once the first was silent for long."""
    made = world.process('two')
    made.cycle()
    world.tick += 60.0
    return made


def agrees(world):
    difference, count = charge_log.ledger_difference(world.store, HALF_LIFE_S)
    assert difference < charge_log.TOLERATED
    return count


def charges(world):
    version = world.store.read_ledger().version
    return list(world.store.charges.charges_up_to(version))


def test_ledger_and_charges_agree_over_restart_clock_step_and_gap(
    world, process
):
    test_charging.runs(world, 's1', 4, 'p', 'ann')
    later(world, process, 600)
    test_charging.runs(world, 's2', 2, 'q', 'bob')
    later(world, process, 600)
    world.cloud.remove(test_charging.fake_cloud.name_uuid('s2'))
    later(world, process, 600)
    assert agrees(world) == 4

    other = succeeding(world)
    later(world, other, 100)
    later(world, other, 100)
    assert agrees(world) == 6

    later(world, other, 10 * charging.LONGEST_S)
    later(world, other, -300)
    later(world, other, 600)
    assert agrees(world) == 8

    later(world, other, 100 * HALF_LIFE_S)
    later(world, other, -100 * HALF_LIFE_S)
    test_charging.runs(world, 's3', 3, 'r', 'eve')
    later(world, other, 600)
    # While the clock was ahead old ones were removed.
    assert agrees(world) == 4
    assert len(world.store.read_ledger().parts) >= 4


def test_a_missing_charge_is_detected(world, process):
    test_charging.runs(world, 's1', 4, 'p', 'ann')
    for _ in range(3):
        later(world, process, 600)
    agrees(world)
    kept = charges(world)
    classes, found = charge_log.read_charges(world.store, kept[-1].version)
    del found[2]
    again = ledger.replay(found, HALF_LIFE_S)
    vcpu = classes.index('VCPU')
    known = world.store.read_ledger().parts['p']['VCPU']
    assert abs(again.use['p'][vcpu] - known) > charge_log.TOLERATED


def test_only_changes_are_written(world, process):
    test_charging.runs(world, 's1', 4, 'p', 'ann')
    later(world, process, 600)
    later(world, process, 600)
    test_charging.runs(world, 's2', 1, 'q', 'bob')
    later(world, process, 600)
    world.cloud.remove(test_charging.fake_cloud.name_uuid('s2'))
    later(world, process, 600)
    changed = [each.changed for each in charges(world)][1:]
    assert [sorted(each) for each in changed] == [
        ['p', 'p/ann'],
        [],
        ['q', 'q/bob'],
        ['q', 'q/bob'],
    ]
    assert changed[-1] == {'q': {}, 'q/bob': {}}
    assert [each.opening is not None for each in charges(world)] == [
        True, False, False, False, False
    ]  # fmt: skip


def test_a_recorded_charge_that_was_never_made_counts_for_nothing(
    world, process, monkeypatch
):
    test_charging.runs(world, 's1', 4, 'p', 'ann')
    later(world, process, 600)

    def dies(*_):
        raise exception.StoreAway('the power is gone')

    with monkeypatch.context() as patched:
        patched.setattr(world.store, 'write_ledger', dies)
        world.now += 600
        with pytest.raises(exception.StoreAway):
            process.cycle()
    agrees(world)
    later(world, succeeding(world), 60)
    assert agrees(world) == 3


def test_a_whole_charge_is_written_again_and_again_and_old_ones_go(
    world, process, monkeypatch
):
    monkeypatch.setattr(charge_log, 'WHOLE_EVERY', 3)
    test_charging.runs(world, 's1', 4, 'p', 'ann')
    for _ in range(7):
        later(world, process, 600)
    assert [each.version for each in charges(world) if each.opening] == [3, 6]
    world.store.charges.remove_older(world.now - 1300)
    assert [each.version for each in charges(world)] == [6, 7, 8]
    assert agrees(world) == 3
    # Of those that nothing says what they go on from nothing is known.
    world.store.charges.remove_older(world.now + 1)
    assert agrees(world) == 3


def test_a_deposed_leader_records_nothing(world, process):
    before = len(charges(world))
    charge = ledger.PeriodCharge(0.0, 1.0, {}, np.array([1.0]))
    with pytest.raises(exception.Deposed):
        charge_log.ChargeLog(world.store).record(
            ledger.UseLedger(HALF_LIFE_S, 0.0), charge, ('VCPU',), 99, 77
        )
    assert len(charges(world)) == before


@pytest.mark.parametrize('suffix', ['csv', 'parquet'])
def test_recorded_charges_are_a_table(world, process, tmp_path, suffix):
    begin = world.now
    test_charging.runs(world, 's1', 4, 'p', 'ann')
    later(world, process, 600)
    later(world, process, 600)
    test_charging.runs(world, 's2', 12, 'p', 'bob')
    later(world, process, 600)
    classes, found = charge_log.read_charges(
        world.store, world.store.read_ledger().version
    )
    path = tmp_path / f'ledger.{suffix}'
    count = export.write_charges(path, found, classes)
    rows = read(path)
    assert len(rows) == count
    assert [path.name] == [each.name for each in tmp_path.glob('*ledger*')]
    cpus = {
        (row['account'], row['begins'] - begin, row['ends'] - begin): (
            row['amount'],
            row['part'],
        )
        for row in rows
        if row['resource_class'] == 'VCPU'
    }
    assert cpus == {
        ('p', 0, 1200): (4, 0.25),
        ('p', 1200, 1800): (16, 1.0),
        ('p/ann', 0, 1800): (4, 0.25),
        ('p/bob', 1200, 1800): (12, 0.75),
    }


def read(path):
    """Rows with seconds of the epoch."""
    if path.suffix == '.parquet':
        rows = parquet.read_table(path).to_pylist()
    else:
        with path.open(newline='') as lines:
            rows = list(csv.DictReader(lines))
    for row in rows:
        for name in ('begins', 'ends'):
            at = row[name]
            if isinstance(at, str):
                at = dt.datetime.fromisoformat(at)
            row[name] = at.timestamp()
        row['amount'], row['part'] = float(row['amount']), float(row['part'])
    return rows


def test_nothing_charged_is_an_empty_table(tmp_path):
    path = tmp_path / 'ledger.csv'
    assert export.write_charges(path, [], ()) == 0
    assert read(path) == []


@pytest.mark.parametrize(
    ('name', 'said'),
    [
        ('ledger.xls', 'must end with .csv or .parquet'),
        ('nowhere/ledger.csv', 'cannot be written'),
    ],
)
def test_an_unwritable_export_file_is_refused(tmp_path, name, said):
    with pytest.raises(exception.ConfigurationError, match=said):
        export.write_charges(tmp_path / name, [], ())
    assert not list(tmp_path.glob('*ledger*'))
