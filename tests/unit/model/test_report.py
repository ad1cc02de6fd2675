# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

from nova_fairness.model import report
from nova_fairness.model import resources

WIDTH = len(resources.RESOURCES)

PLAIN = {
    user: report.UserTotals(
        instance_heaviness=number / 2,
        endowment=np.full(WIDTH, number),
        usage=np.full(WIDTH, number + 1),
        instances=number,
    )
    for number, user in enumerate(('anna', 'bob', 'zoe'), 1)
}


def test_a_table_reads_like_the_mapping_it_was_made_of():
    table = report.UserTable.of(PLAIN)
    assert list(table) == list(PLAIN)
    assert len(table) == 3
    for user, expected in PLAIN.items():
        got = table[user]
        assert got.instance_heaviness == expected.instance_heaviness
        assert got.instances == expected.instances
        assert got.endowment.tolist() == expected.endowment.tolist()
        assert got.usage.tolist() == expected.usage.tolist()


@pytest.mark.parametrize('user', ['', 'a', 'barbara', 'zz'])
def test_an_absent_user_is_missing(user):
    table = report.UserTable.of(PLAIN)
    assert user not in table
    with pytest.raises(KeyError):
        table[user]


def test_a_report_table_is_immutable():
    table = report.UserTable.of(PLAIN)
    assert report.UserTable.of(table) is table


def test_an_empty_table_has_the_width_of_the_resources():
    assert report.UserTable.of({}).usage.shape == (0, WIDTH)
