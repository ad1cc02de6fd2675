# SPDX-License-Identifier: Apache-2.0

"""A real browser reads the pages of a real Horizon.

What is real behind Horizon and what is a fake says
:mod:`tests.integration.dashboard.fake_openstack`.
"""

import os
import pathlib
import re

from tests.integration.dashboard import browser
from tests.integration.dashboard import fake_openstack
from tests.integration.dashboard import horizon_site
from tests.unit.api_ext import fake_cloud
from tests.unit.api_ext import fake_requests

WIDTHS = 1280, 400
PLAN = fake_requests.PLANS[0]
OF_PROJECTS = (
    'project/fairness_servers/',
    'project/fairness_requests/',
    'project/fairness_requests/{waits}/',
    'project/fairness_share/',
    'project/fairness_starts/',
)
OF_OPERATORS = (
    'admin/fairness_board/',
    'admin/fairness_hosts/',
    'admin/fairness_queue/',
    'admin/fairness_evictions/',
    'admin/fairness_tree/',
    'admin/fairness_plans/',
    f'admin/fairness_plans/{PLAN}/',
    'admin/fairness_border/',
    'admin/fairness_choices/?host=cmp1',
)
OF_TREE, OF_SHARE = 'admin/fairness_tree/', 'project/fairness_share/'
OF_NODES = {'fairness_board', 'fairness_choices', 'fairness_hosts'}
PICTURES = os.environ.get('FAIRNESS_DASHBOARD_PICTURES')
"""Directory for pictures of all pages; none are kept without it."""


def look(page, user, paths, part=''):
    """Everything that is wrong with pages for readers, by page and width.

    :param part: label of a closed part that is opened.
    """
    found = {}
    for path in paths:
        for pixels in WIDTHS:
            page.width(pixels)
            page.open(path)
            if part:
                page.press(part)
            faults = page.faults()
            if page.is_too_wide():
                faults.append('wider than the window')
            if faults:
                found[path, pixels] = faults
            if PICTURES:
                name = path.strip('/').replace('/', '-').replace('?', '-')
                name += '-opened' if part else ''
                kept = pathlib.Path(PICTURES) / f'{user}-{name}-{pixels}.png'
                page.shoot(kept)
    page.width(WIDTHS[0])
    return found


def test_alice_sees_why_a_server_waits_and_cancels_it(cloud, site):
    with browser.opened(site, 'alice') as page:
        paths = [each.format(waits=cloud.waits) for each in OF_PROJECTS]
        assert look(page, 'alice', paths) == {}
        text = page.open('project/fairness_servers/')
        assert fake_openstack.SUMMARY in text
        assert text.count('it starts at about 20') == 1
        text = page.open('project/fairness_requests/')
        assert 'that all projects may use' in text
        text = page.open('project/fairness_starts/')
        assert 'two waits; it is not known how long z1: 0' in text
        page.open(f'project/fairness_requests/{cloud.waits}/')
        estimate = cloud.fairness.ask(
            'alice', 'GET', f'/fairness/requests/{cloud.waits}'
        ).json['request']['estimated_start']['p50']
        assert estimate[:16].replace('T', ' ') in page.text
        page.press('Cancel batch-waits')
        page.press('Cancel the request')
        assert 'Done.' in page.text
        told = cloud.world.store.request(cloud.waits).request
        assert told.state.value == 'cancelled'
        cloud.cycle()
        assert cloud.waits not in cloud.world.cloud.servers
        text = page.open('project/fairness_requests/')
        assert 'batch-waits' not in text
        assert 'batch-later' in text


def test_alice_cancels_a_request_by_keys_alone(cloud, site):
    with browser.opened(site, 'alice') as page:
        page.open(f'project/fairness_requests/{cloud.waits}/')
        page.press_by_keys('Cancel batch-waits')
        page.press_by_keys('Cancel the request')
        assert 'Done.' in page.text
    told = cloud.world.store.request(cloud.waits).request
    assert told.state.value == 'cancelled'


def test_pages_are_in_the_language_that_the_user_chose(cloud, site):
    with browser.opened(site, 'alice') as page:
        chosen = {'name': 'horizon_language', 'value': 'de'}
        page.driver.add_cookie(chosen)
        text = page.open('project/fairness_starts/')
        assert 'Ressourcenklasse' in text
        assert 'wartet; es ist nicht bekannt, wie lange' in text
        told = page.asked('/project/fairness_starts/flavors/')['json']
        assert told['now'] == 'startet jetzt'
        paths = [each.format(waits=cloud.waits) for each in OF_PROJECTS]
        assert look(page, 'alice-de', paths) == {}
        page.open(f'project/fairness_requests/{cloud.waits}/')
        page.press('batch-waits zurücknehmen')
        page.press('Die Anfrage zurücknehmen')
        assert 'Erledigt.' in page.text


def test_a_member_of_another_project_sees_nothing_of_it(cloud, site):
    secrets = ('web-slow', 'batch-', fake_openstack.RED, cloud.waits)
    with browser.opened(site, 'carol') as page:
        for path in (
            'project/fairness_servers/',
            'project/fairness_requests/',
            'project/fairness_requests/?all=1',
            'project/fairness_share/',
            'project/fairness_starts/',
        ):
            page.open(path)
            assert [each for each in secrets if each in page.source] == []
        assert 'carol-secret' in page.open('project/fairness_requests/')
        text = page.open(f'project/fairness_requests/{cloud.waits}/')
        assert 'could not be found' in text
        assert 'Cancel' not in text
        assert 'VCPU' not in text
        # Whatever the page, the interface decides.
        cancel = cloud.fairness.ask(
            'carol',
            'POST',
            f'/fairness/requests/{cloud.waits}/action',
            {'cancel': None},
        )
        assert cancel.status_code == 404
        for path in OF_OPERATORS:
            page.open(path)
            assert [each for each in secrets if each in page.source] == []


def test_an_operator_reorders_the_queue_and_sets_a_metric(cloud, site):
    with browser.opened(site, 'admin') as page:
        assert look(page, 'admin', OF_OPERATORS) == {}
        text = page.open('admin/fairness_board/')
        assert re.search('red 1+ for room that all projects may use 2', text)
        page.open('admin/fairness_queue/')
        page.press('First')
        assert '(first)' in page.text
        page.press('Hold')
        assert 'End the hold' in page.text
        page.open(f'admin/fairness_plans/{PLAN}/')
        page.press('Approve')
        assert 'approved' in page.text
        assert 'Change' in page.open('admin/fairness_choices/?host=cmp1')
        page.press('Set on all hosts DominantShareMetric')
        hosts = cloud.fairness.ask('admin', 'GET', '/fairness/hosts').json
        assert hosts['hosts'][0]['metric'] == 'DominantShareMetric'
        page.open('admin/fairness_tree/')
        field = page.find('input[name=share]')
        field.clear()
        field.send_keys('7.5')
        page.press('Preview')
        assert 'Preview, nothing was changed: of 3 requests' in page.text
        field = page.find('input[name=share]')
        assert field.get_attribute('value') != '7.5'
        field.clear()
        field.send_keys('7.5')
        page.press('Set')
        cloud.cycle()
        page.open('admin/fairness_tree/')
        assert page.find('input[name=share]').get_attribute('value') == '7.5'


def test_an_operator_reads_names_or_ids_if_keystone_refuses(cloud, site):
    ids = f'{fake_openstack.RED}/{fake_openstack.ALICE}'
    with browser.opened(site, 'admin') as page:
        text = page.open('admin/fairness_queue/')
        for each in ('batch-waits', 'carol-secret', cloud.waits, 'blue'):
            assert each in text
        assert 'red/alice' in page.open(OF_TREE)
        cloud.keystone.refused = {'v3/projects', 'v3/users'}
        text = page.open(OF_TREE)
        assert ids in text
        assert 'red/alice' not in text
        for path in ('board', 'queue'):
            text = page.open(f'admin/fairness_{path}/')
            assert fake_openstack.RED in text


def test_an_operator_sees_users_of_a_host_that_wait_for_cpu(cloud, site):
    with browser.opened(site, 'admin') as page:
        page.open('admin/fairness_board/')
        page.follow('cmp1')
        assert 'host=cmp1' in page.driver.current_url
        rows = [each.split() for each in page.text.splitlines()]
        alice = ['alice', 'a' * 32, '1', '75', '%', '0.50', 'CPUs']
        assert [*alice, '1.00', 'CPU', 'yes'] in rows
        bob = ['bob', 'b' * 32, '1', '25', '%', '1.00', 'CPU']
        assert [*bob, '1.00', 'CPU', 'no'] in rows
        page.follow('Status of all hosts')
        assert 'Status of Fair Sharing' in page.text
        text = page.open('admin/fairness_hosts/?host=cmp9')
        assert 'Host cmp9 could not be found' in text
        cloud.agents.silent.add('cmp1')
        assert 'is not available now' in page.open('admin/fairness_hosts/')


def test_an_operator_sees_evictions_and_the_owner_reads_the_reason(
    cloud, site
):
    spot = cloud.evict()
    told = cloud.world.cloud.servers[spot]['metadata']
    why = 'it makes room for a request of'
    with browser.opened(site, 'admin') as page:
        assert look(page, 'admin', ['admin/fairness_evictions/']) == {}
        text = page.open('admin/fairness_evictions/')
        assert f'{why} project blue' in text
        assert told['fairness:leaves_why'] in text
        assert told['fairness:leaves_at'] in text
        assert text.count(spot) == text.count('spot-one') == 2
        urgent = cloud.servers['carol-urgent']
        assert text.count('carol-urgent') == text.count(urgent) == 2
        page.follow(urgent)
        assert urgent in page.text
        assert 'carol-urgent' in page.text
    leaves = told['fairness:leaves_at'][:16].replace('T', ' ')
    with browser.opened(site, 'alice') as page:
        text = page.open('project/fairness_servers/')
        assert f'It leaves at {leaves} UTC: {why} another project' in text
        assert fake_openstack.BLUE not in page.source


def test_an_operator_sees_the_border_and_sends_a_host_over_it(cloud, site):
    with browser.opened(site, 'admin') as page:
        path = 'admin/fairness_border/?host=h1'
        assert look(page, 'admin', [path]) == {}
        text = page.open(path)
        assert 'cloud is away' in text
        assert 'Cloud (does not answer)' in text
        assert 'in the batch system' in text
        assert 'open, 1 at work on 4 cores' in text
        assert 'Work on h1' in text
        page.press('Move h1')
        assert 'h1: moves to the cloud, not begun' in page.text
        page.press('Cancel the move h1')
        assert 'h1: in the batch system' in page.text


OF_HOSTS = (
    '/fairness/hosts',
    '/fairness/hosts/cmp1/preview',
    '/fairness/preemptions?all_projects=true',
    '/fairness/partition',
    '/fairness/partition/hosts',
)


def test_pages_of_operators_are_in_no_menu_of_a_member(cloud, site):
    with browser.opened(site, 'alice') as page:
        page.open('project/fairness_servers/')
        assert 'project/fairness_share' in page.source
        for path in OF_OPERATORS:
            slug = path.split('/')[1]
            assert slug not in page.source, slug
    for path in OF_HOSTS:
        assert cloud.fairness.ask('alice', 'GET', path).status_code == 403
        assert cloud.fairness.ask('admin', 'GET', path).status_code == 200


def test_a_manager_divides_the_share_of_the_project(cloud, site, monkeypatch):
    mary = {'user_id': 'a9' * 16, 'project_id': fake_openstack.RED}
    roles = ['manager', *fake_cloud.MEMBER]
    monkeypatch.setitem(fake_cloud.TOKENS, 'mary', {**mary, 'roles': roles})
    with browser.opened(site, 'mary') as page:
        assert look(page, 'mary', ['project/fairness_share/']) == {}
        page.open('project/fairness_share/')
        assert page.source.count('name="share"') == 1
        page.find('input[name=share]').clear()
        page.find('input[name=share]').send_keys('3')
        page.press('Preview')
        assert 'Preview, nothing was changed' in page.text
        page.find('input[name=share]').clear()
        page.find('input[name=share]').send_keys('3')
        page.press('Set')
        cloud.cycle()
        page.open('project/fairness_share/')
        assert page.find('input[name=share]').get_attribute('value') == '3.0'

        assert look(page, 'mary', [OF_SHARE], 'Limits of') == {}
        page.open(OF_SHARE)
        page.press('Limits of')
        page.fill('details[open] [name=limit-ceiling]', 'VCPU=3')
        page.press('Preview limits')
        assert 'Preview, nothing was changed' in page.text
        assert ceilings(cloud) == {}
        page.press('Limits of')
        page.fill('details[open] [name=limit-ceiling]', 'VCPU=3')
        page.press('Set limits')
        cloud.cycle()
        assert 'At most at once: VCPU=3' in page.open(OF_SHARE)
        assert ceilings(cloud) == {ALICES_SHARE: {'VCPU': 3.0}}


ALICES_SHARE = f'{fake_openstack.RED}/{fake_openstack.ALICE}'


def ceilings(cloud):
    """Amounts of accounts that have such a limit, as operators read them."""
    found = cloud.fairness.ask(
        'admin', 'GET', '/fairness/limits?all_projects=true'
    ).json['limits']
    return {e['account']: e['ceiling'] for e in found if e['ceiling']}


def test_an_operator_previews_and_sets_limits_beside_shares(cloud, site):
    field = 'details[open] [name=limit-time_limit]'
    with browser.opened(site, 'admin') as page:
        assert look(page, 'admin', [OF_TREE], 'Limits of red') == {}
        assert 'Budget (unit-hours): 100000' in page.text
        for order, told in (
            ('Preview limits', 'Preview, nothing was changed'),
            ('Set limits', 'Done.'),
        ):
            page.open(OF_TREE)
            assert 'Time limit (h): 2' not in page.text
            page.press('Limits of red')
            page.fill(field, '2')
            page.press(f'{order} red')
            assert told in page.text
            cloud.cycle()
        assert 'Time limit (h): 2' in page.open(OF_TREE)
        page.press('Limits of red')
        page.fill(field, 'much')
        page.press('Set limits red')
        words = 'Time limit (h): a number of 0 or more is expected'
        assert words in page.text
        assert 'Time limit (h): 2' in page.text


def test_a_member_cannot_divide_the_share(cloud, site):
    with browser.opened(site, 'bob') as page:
        page.open('project/fairness_share/')
        assert 'name="share"' not in page.source
        assert 'name="limit-' not in page.source
    answer = cloud.fairness.ask(
        'bob', 'PUT', '/fairness/limits',
        {'account': ALICES_SHARE, 'ceiling': {'VCPU': 9}},
    )  # fmt: skip
    assert answer.status_code == 403
    answer = cloud.fairness.ask(
        'bob',
        'PUT',
        '/fairness/shares',
        {
            'account': f'{fake_openstack.RED}/{fake_openstack.ALICE}',
            'share': 9,
        },
    )
    assert answer.status_code == 403


def test_without_the_cluster_service_only_node_panels_are_there(
    tmp_path, endpoint, state
):
    cloud = fake_openstack.FakeOpenStack(tmp_path, has_queue=False)
    endpoint.show(cloud)
    with (
        horizon_site.serving(endpoint.keystone, state) as other,
        browser.opened(other, 'alice') as page,
    ):
        text = page.open('project/fairness_servers/')
        assert 'My Servers' in text
        assert fake_openstack.SUMMARY in text
        assert 'fairness_requests' not in page.source
        assert 'fairness_share' not in page.source
        page.log_out()
        page.log_in('admin')
        assert 'alice' in page.open('admin/fairness_hosts/')
        menu = set(re.findall(r'admin/(fairness_\w+)/', page.source))
        assert menu == OF_NODES
    cloud.world.close()
