# SPDX-License-Identifier: Apache-2.0

"""The page about scenarios lists what files and runs can say."""

import re

from fairness_lab.results import kinds
from tests.fixtures import documented
from tests.fixtures import manual_fields

PAGE = (documented.PAGES.parent / 'user/scenarios.rst').read_text('utf-8')


def directive_arguments(directive):
    """Arguments of all uses of a directive."""
    pattern = rf'^\.\. {directive}:: (.+(?:\n +.+)*)'
    return [each.split() for each in re.findall(pattern, PAGE, re.MULTILINE)]


def terms(text):
    return re.findall(r'^``([\w-]+)``', text, re.MULTILINE)


def test_the_page_lists_each_check_once():
    made = manual_fields.load('expectations').text
    found = [
        term
        for (who,) in directive_arguments('expectations')
        for term in terms(made(who))
    ]
    assert sorted(found) == sorted(kinds.KINDS)


def test_the_page_lists_settings_with_their_defaults():
    made = manual_fields.load('settings').text
    text = ''.join(
        made(place, names) for place, *names in directive_arguments('settings')
    )
    assert '``vcpus`` (1)\n    Number of vCPUs' in text
    assert '``memory_mib`` (4096)\n    Memory that its VMs may use' in text
    assert '``disk_depth`` (1)\n    Requests under way at once' in text
