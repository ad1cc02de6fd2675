# SPDX-License-Identifier: Apache-2.0

from nova_fairness.model import wording


def test_numbers_stand_to_the_right_and_lines_end_with_their_text():
    lines = [('name', 'parts'), ('a', '1'), ('longer', '-')]
    assert wording.format_table(lines, [False, True]) == (
        'name    parts\na           1\nlonger      -\n'
    )
    assert wording.format_table(lines, [False, False]) == (
        'name    parts\na       1\nlonger  -\n'
    )
