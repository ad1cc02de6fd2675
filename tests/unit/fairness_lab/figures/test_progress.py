# SPDX-License-Identifier: Apache-2.0

"""What is said while something goes on."""

import pytest

from fairness_lab.figures import progress


@pytest.fixture
def watched(monkeypatch):
    """Somebody looks at a terminal."""
    monkeypatch.setenv('FORCE_COLOR', '1')
    monkeypatch.setenv('COLUMNS', '100')


def test_without_a_terminal_there_is_no_bar(capsys):
    bar = progress.ProgressBar()
    bar.begin('load', 10)
    assert not bar.move(5)
    bar.print_line('[brackets] stay')
    bar.end()
    assert capsys.readouterr().err == '[brackets] stay\n'


def test_on_a_terminal_a_bar_moves_and_goes_away(watched, capsys):
    bar = progress.ProgressBar()
    bar.begin('load', 10, counts=True)
    assert bar.move(5, 'half')
    bar.print_line('something happened')
    bar.end()
    assert not bar.move(6)
    shown = capsys.readouterr().err
    assert 'half' in shown
    assert '5/10' in shown
    assert 'something happened' in shown


def test_the_laboratory_prints_parts_of_users_in_lines(capsys):
    said = progress.RunProgress()
    said.begin(60)
    for t_s in (0, 5, 11):
        said.tick(t_s, {'ann': 0.25, 'bob': 0.75})
    said.end()
    lines = capsys.readouterr().err.splitlines()
    assert [line.split('] ')[1] for line in lines] == [
        'load begins, 60 s',
        '    0 s of load: ann 25 %, bob 75 %',
        '   11 s of load: ann 25 %, bob 75 %',
    ]


def test_a_short_simulation_shows_no_progress(capsys):
    said = progress.BatchProgress()
    said.begin('chain', 100)
    said.tick(50)
    said.end()
    assert capsys.readouterr().err == ''


def test_a_simulation_counts_its_rounds_on_a_terminal(watched, capsys):
    said = progress.BatchProgress()
    said.begin('chain', 100)
    said.tick(50)
    said.end()
    assert '50/100' in capsys.readouterr().err
