# SPDX-License-Identifier: Apache-2.0

"""Lists of CPUs."""

import pytest

from nova_fairness.model import cpus


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('', ()),
        ('\n', ()),
        ('0', (0,)),
        ('0-1,3\n', (0, 1, 3)),
        ('3,1-2,2', (1, 2, 3)),
        ('0-127', tuple(range(128))),
    ],
)
def test_a_list_of_cpus_is_ascending(text, expected):
    assert cpus.parse_cpus(text) == expected


@pytest.mark.parametrize('text', ['a', '3-1', '0-', '-1', '1,,2', '0-3,^2'])
def test_a_text_that_is_no_list_of_cpus_is_refused(text):
    with pytest.raises(ValueError):
        cpus.parse_cpus(text)


@pytest.mark.parametrize(
    ('of', 'expected'),
    [
        ((), ''),
        ((2,), '2'),
        ((3, 0, 1, 1), '0-1,3'),
        (range(4), '0-3'),
        ((0, 2, 4, 5, 6), '0,2,4-6'),
    ],
)
def test_a_list_is_written_as_the_kernel_does(of, expected):
    assert cpus.text(of) == expected
    assert cpus.parse_cpus(expected) == tuple(sorted(set(of)))
