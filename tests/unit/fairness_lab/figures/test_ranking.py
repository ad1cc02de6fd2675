# SPDX-License-Identifier: Apache-2.0

"""Sentences that say which run leads, and whether that is noise."""

import pytest

from fairness_lab.figures import ranking


def cloud(errors, measure='share_error'):
    """A cloud whose runs have these errors, one for each seed."""
    return {
        'scenario': 'small',
        'runs': [
            {
                'name': name,
                'measures': {
                    measure: {
                        'values': values,
                        'mean': sum(values) / len(values),
                        'sd': 0.01 if len(values) > 1 else None,
                    }
                },
            }
            for name, values in errors.items()
        ],
    }


def told(errors, measure='share_error'):
    [sentence] = ranking.sentences([cloud(errors, measure)])
    return sentence


def test_a_run_that_leads_every_other_one_is_named():
    assert told(
        {
            'fifo': [0.30, 0.31, 0.32],
            'fair_tree': [0.10, 0.12, 0.14],
            'synergy': [0.20, 0.22, 0.25],
        }
    ) == (
        'small: error of shares is least with fair_tree (12.00%), 10.33 points'
        ' below synergy (95 % interval 8.90 to 11.77, 3 seeds): not noise'
    )


def test_a_lead_that_is_noise_is_called_noise():
    assert told(
        {
            'fifo': [0.30, 0.31, 0.32],
            'fair_tree': [0.10, 0.12, 0.14],
            'synergy': [0.14, 0.12, 0.11],
        }
    ) == (
        'small: error of shares is least with fair_tree (12.00%), but the'
        ' difference from synergy is noise (3 seeds); 1 other beyond noise'
    )


def test_one_seed_does_not_tell():
    sentence = told({'fifo': [0.3], 'fair_tree': [0.1]})
    assert 'least with fair_tree (10.00%), 20.00 points below fifo' in sentence
    assert 'one seed does not tell whether that is noise' in sentence


def test_work_that_is_lost_is_told_of_too():
    sentence = told({'least': [0.1, 0.1], 'opie': [0.2, 0.2]}, 'work_lost')
    assert sentence.startswith('small: work lost is least with least (10.00%)')


@pytest.mark.parametrize('errors', [{}, {'fifo': [0.3, 0.4]}])
def test_nothing_is_told_of_a_run_alone(errors):
    assert [*ranking.sentences([cloud(errors)])] == []


def test_a_run_without_number_is_left_out():
    found = cloud({'fifo': [0.3, 0.4], 'fair_tree': [0.1, 0.2]})
    missing = {'values': [0.1, None], 'mean': None, 'sd': None}
    found['runs'].append(
        {'name': 'other', 'measures': {'share_error': missing}}
    )
    [sentence] = ranking.sentences([found])
    assert 'other' not in sentence
    *_, last = ranking.table([found]).splitlines()
    assert last.split() == ['small', 'other', '-']


def test_a_table_has_means_and_deviations():
    head, *rows = ranking.table(
        [cloud({'fifo': [0.3, 0.4], 'fair_tree': [0.1]})]
    ).splitlines()
    assert head.split() == ['scenario', 'run', 'share', 'error', '%']
    assert [row.split()[2:] for row in rows] == [['35.0', '±', '1.0'],
                                                 ['10.0']]  # fmt: skip
