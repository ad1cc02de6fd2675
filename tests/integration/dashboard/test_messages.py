# SPDX-License-Identifier: Apache-2.0

"""Catalogues of the pages have all that the pages say."""

import pathlib
import shutil
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[3]
PAGES = TOP / 'fairness_dashboard'


def ran(top, *words):
    return subprocess.run(
        [str(top / 'tools/messages.sh'), *words],
        capture_output=True,
        check=False,
        text=True,
    )


@pytest.fixture
def other(tmp_path):
    """Another checkout with the same environment."""
    for folder in ('tools', 'fairness_dashboard'):
        shutil.copytree(TOP / folder, tmp_path / folder)
    for file in ('bindep.txt', 'setup.cfg', 'requirements.txt'):
        shutil.copy(TOP / file, tmp_path)
    pip = 'tests/integration/dashboard/pip.txt'
    (tmp_path / pip).parent.mkdir(parents=True)
    shutil.copy(TOP / pip, tmp_path / pip)
    (tmp_path / 'build').mkdir()
    (tmp_path / 'build/dashboard').symlink_to(TOP / 'build/dashboard')
    return tmp_path


def test_catalogues_are_up_to_date():
    done = ran(TOP, '--check')
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_new_sentence_is_reported_until_catalogues_are_updated(other):
    page = other / 'fairness_dashboard/board.py'
    with page.open('a') as file:
        file.write("\nNEW = gettext_lazy('A new sentence')\n")
    done = ran(other, '--check')
    assert done.returncode == 1
    assert 'not up to date' in done.stderr
    assert 'A new sentence' in done.stderr
    assert ran(other).returncode == 0
    assert ran(other, '--check').returncode == 0
    catalogue = other / 'fairness_dashboard/locale/django.pot'
    assert 'msgid "A new sentence"' in catalogue.read_text('utf-8')


def test_a_language_begins_with_all_sentences(other):
    locale = other / 'fairness_dashboard/locale'
    assert ran(other, '--new', 'pt_BR').returncode == 0
    made = locale / 'pt_BR/LC_MESSAGES/django.po'
    template = (locale / 'django.pot').read_text('utf-8')
    count = template.count('\nmsgid ')
    assert made.read_text('utf-8').count('\nmsgid ') == count > 200
    assert made.with_suffix('.mo').exists()
    done = ran(other, '--new', '../x')
    assert done.returncode == 1
    assert 'needs a language such as de' in done.stderr


def test_each_sentence_has_a_german_translation():
    catalogue = PAGES / 'locale/de/LC_MESSAGES/django.po'
    done = subprocess.run(
        ['msgfmt', '--statistics', '-o', '/dev/null', str(catalogue)],
        capture_output=True,
        check=True,
        text=True,
    )
    assert 'untranslated' not in done.stderr
    assert 'fuzzy' not in done.stderr
