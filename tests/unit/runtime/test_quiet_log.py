# SPDX-License-Identifier: Apache-2.0

import logging

from nova_fairness.runtime import quiet_log


class FakeClock:
    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s


def test_counts_are_given_by_name():
    counted = quiet_log.NameCounts()
    for name in ('b', 'a', 'b'):
        counted.add(name)
    assert counted.counts() == {'a': 1, 'b': 2}


def test_a_flood_is_one_line_a_minute_and_says_how_much_is_missing(caplog):
    clock = FakeClock()
    quiet = quiet_log.QuietLog(logging.getLogger('test'), clock)
    for _ in range(1000):
        quiet.warning('kind', 'n1', 'wrong')
    clock.now_s = 61.0
    quiet.warning('kind', 'n1', 'wrong')
    quiet.warning('kind', 'n2', 'other')
    assert caplog.messages == [
        'wrong',
        'wrong (999 like it were not logged)',
        'other',
    ]


def test_invented_sources_do_not_fill_the_log(caplog):
    clock = FakeClock()
    quiet = quiet_log.QuietLog(logging.getLogger('test'), clock)
    for number in range(1000):
        quiet.warning('kind', f'n{number}', 'wrong')
    assert len(caplog.messages) == 10
    quiet.warning('other kind', 'n999', 'odd')
    clock.now_s = 60.0
    quiet.warning('kind', 'n999', 'wrong')
    assert caplog.messages[10:] == [
        'odd',
        'wrong (990 like it were not logged)',
    ]
