# SPDX-License-Identifier: Apache-2.0

"""The agents as services of Nova."""

import pytest

from tests.integration.nova import watching

pytestmark = [pytest.mark.real, pytest.mark.timeout(watching.TIMEOUT_S)]
pytest_plugins = ('tests.fixtures.nova_cloud.fixtures',)


def test_agents_are_listed_as_services_of_their_hosts(cloud):
    listed = cloud.admin.get('compute', '/os-services?binary=nova-fairness')
    found = {
        (item['host'], item['zone'], item['status'], item['state'])
        for item in listed['services']
    }
    assert found == {
        (name, 'internal', 'enabled', 'up') for name in cloud.nodes
    }


def test_the_first_start_on_a_clean_cell_logs_no_warning(cloud):
    for node in cloud.nodes.values():
        said = (node.directory / 'nova-fairness.log').read_text()
        assert (
            f'Nova has the record of this agent: nova-fairness on {node.name}'
            in said
        )
        assert 'Traceback' not in said
        assert ' ERROR ' not in said


def test_the_command_line_lists_agents(cloud):
    listed = watching.openstack(
        cloud, 'compute', 'service', 'list', '--service', 'nova-fairness'
    )
    assert {item['Host']: item['State'] for item in listed} == dict.fromkeys(
        cloud.nodes, 'up'
    )
    hosts = watching.openstack(cloud, 'fairness', 'host', 'list')
    assert {item['Name'] for item in hosts} == set(cloud.nodes)


@pytest.mark.slow
def test_rounds_go_on_without_a_conductor_and_nova_hears_again(cloud):
    node = cloud.nodes['cmp1']
    try:
        cloud.plane.stop_program('nova-conductor')
        watching.await_rounds(node, 5)
        said = node.said('nova-fairness')
        watching.eventually(
            lambda: 'down' in cloud.services('nova-fairness').values(),
            lambda: said,
        )
        watching.await_rounds(node, 5)
    finally:
        cloud.plane.start_program('nova-conductor')
    cloud.await_up()


def test_a_dead_agent_is_down_and_the_api_says_so(cloud):
    node = cloud.nodes['cmp2']
    node.kill_agent()
    try:
        watching.eventually(
            lambda: (
                cloud.services('nova-fairness')
                == {'cmp1': 'up', 'cmp2': 'down'}
            ),
            lambda: cloud.services('nova-fairness'),
        )
        alone = cloud.admin.ask('GET', 'compute', '/fairness/hosts/cmp2')
        assert alone.status == 503
        assert 'serviceUnavailable' in alone.body
        listed = cloud.admin.get('compute', '/fairness/hosts')
        assert listed['partial'] is True
        assert [item['host'] for item in listed['not_reached']] == ['cmp2']
        assert [item['name'] for item in listed['hosts']] == ['cmp1']
    finally:
        node.start_agent()
    cloud.await_up()
    watching.eventually(
        lambda: (
            cloud.admin.ask('GET', 'compute', '/fairness/hosts/cmp2').status
            == 200
        )
    )


@pytest.mark.slow
def test_a_node_deleted_from_nova_registers_again(cloud):
    node = cloud.nodes['cmp2']

    def listed():
        return set(cloud.services('nova-fairness'))

    node.stop_agent()
    try:
        for said in ('is no longer', 'was not'):
            done = node.run_agent('withdraw')
            assert done.returncode == 0, done.stderr
            assert done.stdout == f'cmp2 {said} a service of Nova\n'
            assert listed() == {'cmp1'}
    finally:
        node.start_agent()
    watching.eventually(lambda: listed() == set(cloud.nodes), listed)


@pytest.mark.slow
def test_the_service_record_of_a_removed_node_is_deleted_as_documented(cloud):
    node = cloud.nodes['cmp2']
    path = '/os-services?binary=nova-fairness&host=cmp2'
    node.stop_agent()
    try:
        (row,) = cloud.admin.get('compute', path)['services']
        gone = cloud.admin.ask(
            'DELETE', 'compute', f'/os-services/{row["id"]}'
        )
        # Nova's own list of senders of notifications lacks it.
        assert gone.status == 500
        assert not cloud.admin.get('compute', path)['services']
    finally:
        node.start_agent()
    watching.eventually(lambda: cloud.admin.get('compute', path)['services'])


@pytest.mark.slow
def test_nova_names_the_owner_that_domain_xml_lacks(cloud, servers):
    node, server = cloud.nodes['cmp2'], servers['carol-1']
    carol = cloud.users['carol']
    node.forget_metadata(server)
    assert carol.user not in node.xml_of(server)
    node.stop_agent()
    before = node.rounds()
    node.start_agent()

    def owner():
        latest = watching.rounds(node)[before:][-1:]
        found = [watching.in_round(done, server) for done in latest]
        return [(vm['user'], vm['project']) for vm in found if vm]

    watching.eventually(
        lambda: owner() == [(carol.user, carol.project)], owner
    )
    # Until then nobody is told what it has, whatever test comes next.
    watching.await_rounds(node, 3)
