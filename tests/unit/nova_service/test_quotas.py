# SPDX-License-Identifier: Apache-2.0

"""Quotas of Nova and Keystone as weights."""

import types

from keystoneauth1 import exceptions
import pytest

from nova_fairness.nova_service import quotas


class FakeApi:
    """Answers of Nova and Keystone by URL, and by user for quotas."""

    def __init__(self, answers):
        self.answers = answers
        self.asked = []

    def get(self, url, params):
        self.asked.append((url, params))
        key = (url, params['user_id']) if 'user_id' in params else url
        if key not in self.answers:
            raise exceptions.NotFound(url)
        return types.SimpleNamespace(json=lambda: self.answers[key])


def quota(cores):
    return {'quota_set': {'id': 'p', 'cores': cores, 'ram': 1}}


def roles(*projects):
    scopes = [{'project': {'id': name}} for name in projects]
    return {
        'role_assignments': [
            {'scope': scope} for scope in (*scopes, {'system': {'all': True}})
        ]
    }


def weights(compute, identity=None):
    return quotas.QuotaWeights(
        'cores', FakeApi(compute), FakeApi(identity or {})
    )


@pytest.mark.parametrize(
    ('limit', 'default', 'weight'),
    [
        (20, 20, 1.0),
        (40, 20, 2.0),
        (5, 20, 0.25),
        (-1, 20, 1.0),
        (20, -1, 1.0),
        (20, 0, 1.0),
        (0, 20, quotas.SMALLEST),
        (2**40, 1, quotas.LARGEST),
    ],
)
def test_a_project_weighs_its_limit_in_defaults(limit, default, weight):
    made = weights(
        {
            '/os-quota-sets/p': quota(limit),
            '/os-quota-sets/p/defaults': quota(default),
        }
    )
    assert made.of_project('p') == weight


def test_a_user_weighs_the_sum_over_all_projects():
    made = weights(
        {
            ('/os-quota-sets/p', 'ann'): quota(10),
            '/os-quota-sets/p/defaults': quota(20),
            ('/os-quota-sets/q', 'ann'): quota(60),
            '/os-quota-sets/q/defaults': quota(20),
        },
        {'/role_assignments': roles('q', 'p', 'q')},
    )
    assert made.of_user('ann') == 0.5 + 3.0


def test_an_unknown_user_or_project_has_no_weight():
    made = weights({}, {'/role_assignments': roles()})
    assert made.of_project('gone') is None
    assert made.of_user('gone') is None


def test_a_user_unknown_to_keystone_has_no_weight():
    made = weights({})

    def find_nobody(url, params):
        raise exceptions.NotFound(f'Could not find user: {params["user.id"]}.')

    made._identity.get = find_nobody
    assert made.of_user('gone') is None


def test_an_api_that_is_not_where_it_should_be_is_no_answer():
    with pytest.raises(exceptions.NotFound):
        weights({}).of_user('ann')
