# SPDX-License-Identifier: Apache-2.0

"""Commands of claims are run, and what they make is compared."""

import dataclasses
import json
import shlex

import pytest

from fairness_lab.evidence import claims
from fairness_lab.evidence import reproduction


def python(code):
    """A command that runs code in a directory with ``OUT``."""
    return f'python -c {shlex.quote(code)} OUT'


def writes(**numbers):
    """A command that writes numbers, and fails if it is run again there."""
    return python(
        f'import json; json.dump({numbers}, open("OUT/made.json", "x"))'
    )


SLOW = python('import time; time.sleep(60)')
CLAIM = claims.Claim(
    name='own-number',
    says='A number.',
    page='index',
    told='{value}',
    file='number.json',
    command=writes(a=4, b=5),
    made='made.json',
    at=['$'],
    recorded={'a': 4, 'b': 5},
    within=0,
    because='Nothing is drawn.',
    cost_s=0.1,
)


class Meter:
    done = 0

    def tick(self, done):
        self.done = done


@pytest.fixture
def meter():
    return Meter()


@pytest.fixture
def reproduce(tmp_path, meter):
    def run(*chosen, within_s=60, seeds=1):
        return reproduction.reproduce(chosen, tmp_path, within_s, seeds, meter)

    return run


@pytest.fixture
def record(tmp_path_factory, monkeypatch):
    """Write recorded results, as in a checkout of the source."""
    records = tmp_path_factory.mktemp('records')
    monkeypatch.setattr(reproduction, '_RECORDS', records)

    def write(**numbers):
        (records / CLAIM.file).write_text(json.dumps(numbers))

    return write


@pytest.fixture(autouse=True)
def no_checkout(tmp_path, monkeypatch):
    """No recorded results, as in a package that is installed."""
    monkeypatch.setattr(reproduction, '_RECORDS', tmp_path / 'none')


def other(**changes):
    return dataclasses.replace(CLAIM, **changes)


def test_equal_numbers_hold(reproduce, meter):
    [found] = reproduce(CLAIM)
    assert found.outcome == 'holds'
    assert found.numbers == {'a': 4, 'b': 5}
    assert found.took_s > 0
    assert meter.done == 1


@pytest.mark.parametrize(
    ('within', 'outcome'), [(0, 'differs'), (0.9, 'differs'), (1, 'holds')]
)
def test_a_different_number_holds_within_its_tolerance(
    reproduce, within, outcome
):
    [found] = reproduce(other(recorded={'a': 4, 'b': 6}, within=within))
    assert found.outcome == outcome
    rows = found.content()['numbers']
    assert [each['holds'] for each in rows] == [True, outcome == 'holds']
    why = 'b: declared 6, reproduced 5'
    assert found.why == ('' if outcome == 'holds' else why)


def test_reproduction_shows_recorded_beside_declared_numbers(
    reproduce, record
):
    record(a=4, b=5)
    [found] = reproduce(CLAIM)
    assert (found.outcome, found.why) == ('holds', '')
    rows = found.content()['numbers']
    assert [each['recorded'] for each in rows] == [4, 5]


def test_a_package_without_results_compares_declared_numbers(reproduce):
    [found] = reproduce(CLAIM)
    rows = found.content()['numbers']
    assert [each['declared'] for each in rows] == [4, 5]
    assert [each['recorded'] for each in rows] == [None, None]


@pytest.mark.parametrize('within', [0, 2])
def test_a_record_that_differs_from_the_claim_does_not_hold(
    reproduce, record, within
):
    """The tolerance is that of a new run, not of the record."""
    record(a=4, b=6)
    [found] = reproduce(other(within=within))
    assert found.outcome == 'differs'
    assert found.why == 'b: declared 5, recorded 6, reproduced 5'


def test_a_record_without_the_number_is_named(reproduce, record):
    record(a=4)
    [found] = reproduce(CLAIM)
    assert found.outcome == 'failed'
    assert f"{CLAIM.file} has no number of own-number: 'b'" in found.why


def test_each_number_that_does_not_hold_is_named(reproduce):
    [found] = reproduce(other(recorded={'a': 4.5, 'b': -1}))
    assert found.why == (
        'a: declared 4.5, reproduced 4; b: declared -1, reproduced 5'
    )


@pytest.mark.parametrize(
    ('command', 'why'),
    [
        (python('raise SystemExit(3)'), 'exit code 3'),
        (python('print()'), 'made.json cannot be read'),
        (writes(a=4), "'b'"),
    ],
)
def test_a_failing_command_does_not_stop_others(reproduce, command, why):
    failed, held = reproduce(other(name='own-bad', command=command), CLAIM)
    assert (failed.outcome, held.outcome) == ('failed', 'holds')
    assert why in failed.why
    numbers = failed.content()['numbers']
    assert [each['reproduced'] for each in numbers] == [None, None]


def test_output_of_a_command_is_kept(reproduce, tmp_path):
    reproduce(other(command=python('print(1); raise SystemExit("two")')))
    said = (tmp_path / 'own-number' / 'output.txt').read_text()
    assert sorted(said.split()) == ['1', 'two']


def test_claims_of_one_command_run_it_once(reproduce, tmp_path, meter):
    found = reproduce(CLAIM, other(name='own-second', recorded={'a': 4}))
    assert [each.outcome for each in found] == ['holds', 'holds']
    assert [each.name for each in tmp_path.iterdir()] == ['own-number']
    assert meter.done == 1


@pytest.mark.parametrize(
    ('changes', 'why'),
    [
        ({'needs': 'real guests'}, 'it needs real guests'),
        ({'cost_s': 61}, 'it takes about 61 s'),
    ],
)
def test_a_skipped_command_names_the_reason(reproduce, tmp_path, changes, why):
    [found] = reproduce(other(**changes))
    assert found.outcome == 'not run'
    assert why in found.why
    assert not any(tmp_path.iterdir())


def test_benchmarks_need_a_checkout(reproduce, tmp_path, monkeypatch):
    monkeypatch.setattr(reproduction, '_TOP', tmp_path)
    [found] = reproduce(other(command='python -m benchmarks.beside --out OUT'))
    assert found.why == 'it needs a checkout of the source'


def test_a_command_that_takes_too_long_is_ended(reproduce, tmp_path):
    [found] = reproduce(other(command=SLOW), within_s=0.5)
    assert found.outcome == 'failed'
    assert 'it was ended' in found.why
    assert found.took_s < 30


def test_the_quickest_command_is_run_first(reproduce):
    """So that as many as possible are run in the time that there is."""
    found = reproduce(
        other(name='own-slow', command=SLOW, cost_s=0.2), CLAIM, within_s=5
    )
    assert [each.outcome for each in found] == ['failed', 'holds']


def seeded():
    """A claim whose ``a`` is the seed, beside a ``b`` of 3."""
    code = (
        "import json,sys; seed=int(sys.argv[-1]) if '--seed' in sys.argv"
        " else 1; json.dump({'a': seed, 'b': 3}, open('OUT/made.json', 'x'))"
    )
    return other(
        command=python(code),
        recorded={'a': 1, 'b': 3},
        seed=1,
        better='less',
    )


def test_numbers_are_spread_over_seeds(reproduce):
    [found] = reproduce(seeded(), seeds=5)
    assert found.outcome == 'holds'
    a, b = (each['over_seeds'] for each in found.content()['numbers'])
    # Three ties with three, and four and five lose.
    assert a == {'seeds': 5, 'mean': 3, 'least': 1, 'most': 5, 'best_in': 3}
    assert b == {'seeds': 5, 'mean': 3, 'least': 3, 'most': 3, 'best_in': 3}


@pytest.mark.parametrize(('claim', 'seeds'), [(CLAIM, 5), (seeded(), 1)])
def test_one_seed_has_no_spread(reproduce, claim, seeds):
    [found] = reproduce(claim, seeds=seeds)
    rows = found.content()['numbers']
    assert [each['over_seeds'] for each in rows] == [None, None]


def test_a_number_without_direction_has_no_best_value(reproduce):
    [found] = reproduce(dataclasses.replace(seeded(), better=''), seeds=2)
    rows = found.content()['numbers']
    assert [each['over_seeds']['best_in'] for each in rows] == [None, None]
