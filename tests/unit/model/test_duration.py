# SPDX-License-Identifier: Apache-2.0

import pytest

from nova_fairness.model import duration


@pytest.mark.parametrize(
    ('text', 'seconds'),
    [
        ('90', 90),
        ('90s', 90),
        ('1.5m', 90),
        (' 12 h ', 43200),
        ('7d', 604800),
        ('2w', 1209600),
        ('0', 0),
    ],
)
def test_durations_are_parsed_in_usual_notations(text, seconds):
    assert duration.parse_seconds(text) == seconds


@pytest.mark.parametrize(
    'text', ['', 'h', '1y', '-1h', '1h30m', '1e9', 'inf', 'nan', '9' * 99]
)
def test_a_text_that_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match='expected seconds'):
        duration.parse_seconds(text)
