# SPDX-License-Identifier: Apache-2.0

"""What accounts may have, use and start, and who says so, in a real cloud."""

import pytest

from tests.integration.nova import faculty as faculty_module
from tests.integration.nova import filling
from tests.integration.nova import watching

pytestmark = [pytest.mark.real, pytest.mark.timeout(watching.TIMEOUT_S)]
pytest_plugins = (
    'tests.fixtures.nova_cloud.fixtures',
    'tests.integration.nova.faculty',
)

OPEN = {'begins': '* * * * *', 'lasts': 3600}
"""A window that is always open."""


def set_share(session, account, share):
    body = {'account': account, 'share': share}
    return session.ask('PUT', 'compute', '/fairness/shares', body).status


def share_of(cloud, account):
    path = '/fairness/shares?all_projects=true'
    listed = cloud.admin.get('compute', path)['shares']
    return {each['name']: each['share'] for each in listed}.get(account)


def test_a_manager_divides_a_project_among_those_right_below_it(faculty):
    cloud, projects = faculty.cloud, faculty.projects
    head = faculty.login('head', project='faculty')
    assert set_share(head, projects['physics'], 70) == 200
    told = watching.openstack(
        cloud,
        *('fairness', 'share', 'set', projects['arts'], '30'),
        user='head',
        scope={'OS_PROJECT_ID': projects['faculty']},
    )
    assert told['share'] == 30
    watching.eventually(
        lambda: (
            [share_of(cloud, projects[name]) for name in faculty_module.GROUPS]
            == [70, 30]
        )
    )
    beta = cloud.users['bob'].project
    for other in ('faculty', 'campus', 'lab'):
        assert set_share(head, projects[other], 9) == 403, other
    for account in (beta, f'{beta}/{cloud.users["bob"].user}', 'nobody'):
        assert set_share(head, account, 9) == 403, account
    # Whoever is no manager divides nothing, not even their own.
    member = cloud.users['physics']
    assert set_share(member, projects['physics'], 9) == 403
    own = f'{projects["physics"]}/{member.user}'
    assert set_share(member, own, 9) == 403
    for name in faculty_module.GROUPS:
        assert set_share(head, projects[name], None) == 200


@pytest.mark.slow
def test_a_manager_divides_a_domain_by_its_token(faculty):
    cloud, projects = faculty.cloud, faculty.projects
    dean = faculty.login('dean', domain='campus')
    assert dean.project == ''
    assert set_share(dean, projects['lab'], 3) == 200
    told = watching.openstack(
        cloud,
        *('fairness', 'share', 'set', projects['lab'], '4'),
        user='dean',
        scope={'OS_DOMAIN_ID': projects['campus']},
    )
    assert told['share'] == 4
    watching.eventually(lambda: share_of(cloud, projects['lab']) == 4)
    for other in ('campus', 'faculty', 'physics'):
        assert set_share(dean, projects[other], 9) == 403, other
    assert set_share(dean, cloud.users['bob'].project, 9) == 403
    assert set_share(dean, projects['lab'], None) == 200


def left(faculty):
    """Unit-hours of physics; -1 while no budget is told."""
    return faculty.limits('physics').get('budget_left', -1)


def test_a_request_beyond_the_budget_waits_until_the_budget_suffices(faculty):
    cloud = faculty.cloud
    faculty.limit('physics', budget=3.0)
    watching.eventually(lambda: left(faculty) == 3)
    first = faculty.boot('physics', 'first', '2h')
    cloud.await_status(first)
    second = faculty.boot('physics', 'second', '2h')
    faculty.await_reasons({second: 'budget_spent'})
    shown = faculty.openstack('physics', 'request', 'show', second)
    assert shown['reason'] == 'budget_spent'
    # An extension is charged at once, and refused where too little is left.
    path = f'/fairness/requests/{first}/action'
    refused = cloud.users['physics'].ask(
        'POST', 'compute', path, {'extend': {'seconds': 7200}}
    )
    assert refused.status == 409, refused
    assert 'budget' in str(refused.body)
    faculty.openstack('physics', 'request', 'extend', first, '30m')
    watching.eventually(
        lambda: 0.4 < left(faculty) <= 0.5,
        lambda: faculty.limits('physics'),
    )
    # What it did not use is there again.
    cloud.delete([first])
    cloud.await_status(second)
    watching.eventually(
        lambda: 0.8 < left(faculty) <= 1,
        lambda: faculty.limits('physics'),
    )


@pytest.mark.slow
def test_a_request_waits_for_a_time_window_of_its_account(faculty):
    cloud = faculty.cloud
    closed = {'begins': faculty_module.in_half_a_day(), 'lasts': 3600}
    faculty.limit('arts', windows=[closed])
    waits = faculty.boot('arts', 'waits')
    faculty.await_reasons({waits: 'window_closed'})
    watching.eventually(lambda: faculty.limits('arts').get('opens_at'))
    other = faculty.boot('physics', 'other')
    cloud.await_status(other)
    assert filling.told(cloud, [waits], 'state') == ['waiting']
    faculty.limit('arts', windows=[OPEN])
    cloud.await_status(waits)


ROOM = 4


@pytest.fixture
def shared(faculty, servers):
    """A faculty that has :data:`ROOM`; a project keeps what is left."""
    if 'kept' not in faculty.projects:
        faculty.found_group('kept', 'carol', 'default')

    def vcpus():
        classes = faculty.cloud.capacity()['classes']
        [found] = [each for each in classes if each['name'] == 'VCPU']
        return found

    # What another test deleted is seen by the next snapshot.
    watching.eventually(lambda: vcpus()['used'] == len(servers), vcpus)
    rest = vcpus()['capacity'] - len(servers) - ROOM
    faculty.limit('kept', nominal={'VCPU': rest}, lending_limit={'VCPU': 0})
    return faculty


@pytest.mark.slow
def test_a_lending_project_starts_before_borrowers(shared):
    cloud = shared.cloud
    shared.limit('physics', nominal={'VCPU': 2})
    borrowed = [
        shared.boot('arts', f'borrowed-{number}') for number in range(ROOM)
    ]
    for each in borrowed:
        cloud.await_status(each)
    more = shared.boot('arts', 'more')
    filling.await_told(cloud, [more], 'position', [1])
    owns = shared.boot('physics', 'owns')
    shared.await_reasons({owns: 'nominal_is_lent'})
    filling.await_told(cloud, [owns, more], 'position', [1, 2])
    cloud.delete(borrowed[:1])
    cloud.await_status(owns)
    assert filling.told(cloud, [more], 'state') == ['waiting']
    # Nobody asks for the rest of what is lent.
    cloud.delete(borrowed[1:2])
    cloud.await_status(more)


@pytest.mark.slow
def test_a_project_that_may_not_borrow_waits_and_delays_no_other(shared):
    cloud = shared.cloud
    shared.limit('arts', borrowing_limit={'VCPU': 0})
    waits = shared.boot('arts', 'waits')
    shared.await_reasons({waits: 'over_borrowing_limit'})
    other = shared.boot('physics', 'other')
    cloud.await_status(other)
    shared.limit('arts', borrowing_limit=None)
    cloud.await_status(waits)
