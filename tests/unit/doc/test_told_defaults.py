# SPDX-License-Identifier: Apache-2.0

"""Values and names of options that pages tell are those of the code.

Two pages that tell different ones contradict each other, and one of them the
code. So each is compared with the code.
"""

import re

import pytest

from nova_fairness.conf import api
from nova_fairness.conf import cluster
from nova_fairness.conf import file_faults
from nova_fairness.conf import opts
from oslo_messaging_zmq import options
from tests.fixtures import documented

PAGES = sorted(
    path
    for path in documented.PAGES.parent.rglob('*')
    if path.suffix in ('.rst', '.inc') and path.name != 'renamed.rst'
)
SECTIONS = {
    'admin/partition.rst': 'fairness_partition',
    'admin/plans.rst': 'fairness_plans',
    'admin/preemption.rst': 'fairness_cluster',
    'admin/queue.rst': 'fairness_cluster',
}
"""Pages about one section; others are about any."""

WORDS = {
    'a quarter': 0.25,
    'a minute': 60.0,
    'an hour': 3600.0,
    'a day': 86400.0,
    'a week': 604800.0,
}
NUMBERS = {'two': 2.0, 'three': 3.0, 'six': 6.0, 'seven': 7.0, 'ten': 10.0}
UNITS = {
    '': 1.0,
    's': 1.0,
    'seconds': 1.0,
    'minutes': 60.0,
    'hours': 3600.0,
    'days': 86400.0,
}
TOLD = re.compile(
    r'(?:(ten)(?: times)? )?``(\w+)``(?: (?:seconds|bytes per second))?'
    r' \(([^()`:;]+?)(?:[;,:][^)]*)?\)'
)
NAMED = re.compile(r'``\[((?:fairness|oslo_messaging_zmq)\w*)\] (\w+)')


def read(text):
    """The number that a text in brackets tells; ``None`` if it is none."""
    if text in WORDS:
        return WORDS[text]
    number, _, unit = text.partition(' ')
    number = number.replace(',', '')
    value = NUMBERS.get(number)
    if value is None and re.fullmatch(r'\d+(\.\d+)?', number):
        value = float(number)
    factor = UNITS.get(unit)
    return None if value is None or factor is None else value * factor


def defaults():
    """Default by section and name."""
    return {
        (getattr(group, 'name', group), option.dest): option.default
        for package in (opts, cluster, api, options)
        for group, listed in package.list_opts()
        for option in listed
    }


DEFAULTS = defaults()


def differing(page, text):
    """Sentences about values of a page that no option has, and a count."""
    section, found, count = SECTIONS.get(page), [], 0
    for times, name, told in TOLD.findall(' '.join(text.split())):
        value = read(told)
        own = {
            float(default) * (10 if times else 1)
            for (group, option), default in DEFAULTS.items()
            if option == name
            and section in (None, group)
            and isinstance(default, int | float)
        }
        if value is None or not own:
            continue
        count += 1
        if value not in own:
            found.append(f'{page}: {name} ({told}): {own}')
    return found, count


def page_name(path):
    return str(path.relative_to(documented.PAGES.parent))


def test_a_value_that_a_page_tells_is_the_default_of_its_option():
    judged = [differing(page_name(p), p.read_text('utf-8')) for p in PAGES]
    assert [each for found, _ in judged for each in found] == []
    assert sum(count for _, count in judged) > 25


@pytest.mark.parametrize(
    ('text', 'is_right'),
    [
        ('looks every ``hosts_interval`` seconds (30)', True),
        ('looks every\n``hosts_interval`` seconds (31)', False),
        ('Every ten ``hosts_interval`` (300 s)', True),
        ('Every ten ``hosts_interval`` (30 s)', False),
        ('After ``time_to_live`` (a day) it stays', True),
        ('After ``time_to_live`` (a week; or so) it stays', False),
    ],
)
def test_a_value_of_a_page_that_the_code_has_not_is_found(text, is_right):
    found, count = differing('admin/cloud.rst', text)
    assert (found == [], count) == (is_right, 1)


def test_an_option_that_a_page_names_with_its_section_is_there():
    known = {(str(group), name) for group, name in DEFAULTS}
    named = {
        (page_name(path), *each)
        for path in PAGES
        for each in NAMED.findall(' '.join(path.read_text('utf-8').split()))
    }
    assert len(named) > 70
    assert {each for each in named if each[1:] not in known} == set()


def test_sections_of_pages_are_those_of_the_product():
    assert {group for group, _ in DEFAULTS} >= {*SECTIONS.values()}
    assert all(
        section.startswith(file_faults.PREFIXES)
        for section in SECTIONS.values()
    )
