# SPDX-License-Identifier: Apache-2.0

"""What a project reads of others: each reason, by every channel."""

import dataclasses
import json

import pytest

from api_ext import validation
from nova_fairness.client import queue as commands
from nova_fairness.cluster.api import requests
from nova_fairness.cluster.eviction import cycle_evictions
from nova_fairness.cluster.eviction import notice_channels
from nova_fairness.model import eviction
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.model import risk
from nova_fairness.observe import queue as observe
from nova_fairness.rpc import requests as interface
from tests.unit.agent.comms import test_guest_notices
from tests.unit.api_ext import fake_cloud as api_cloud
from tests.unit.api_ext import test_other_releases
from tests.unit.client import test_with_interface
from tests.unit.cluster import test_service
from tests.unit.model import test_reason

world = test_service.world
node = test_guest_notices.node
OWN, OTHER = api_cloud.RED, 'secret-name'
NUMBERS = ('7001', '7002', '7003')
OPERATORS = {
    reason.Reason.OVER_ACCOUNT_CEILING: ('7002', '7003'),
    reason.Reason.OVER_BORROWING_LIMIT: ('7001', '7002'),
    reason.Reason.BUDGET_SPENT: ('7002',),
    reason.Reason.NOMINAL_IS_LENT: ('7002',),
}
"""Numbers that only operators read where they are those of another account."""


@pytest.fixture
def cloud(world, tmp_path):
    """The HTTP interface in front of a service with a real store."""
    process = world.process()
    world.cloud.add_host('h2', 8)
    process.cycle()
    made = api_cloud.FakeCloud(tmp_path)
    made.process = process
    made.operations = requests.ClusterOperations(world.store, process)
    made.requests.rpc._endpoint = interface.RequestsEndpoint(made.operations)
    return made


def why_of(token, name=OTHER):
    return test_reason.about(token, name)


def leave_of(world, cloud, token, cause=eviction.EvictionCause.ROOM):
    """A server of the own project leaves for a request of another one."""
    server = world.post(f'lent-{token.value}', vcpu=1, project=OWN)
    cloud.process.cycle()
    world.cloud.build(server, 'h2', {'VCPU': 1})
    cloud.process.cycle()
    other = world.post(f'others-{token.value}', vcpu=99, project=OTHER)
    found = cloud.process.nova.servers(world.now)[server]
    epoch = world.store.leader().epoch
    leave = cloud.process._leaving.start_eviction(
        found, cause, why_of(token), (eviction.EvictionAction.SHELVE,), epoch,
        request=other,
    )  # fmt: skip
    return leave, other


def is_clean(token, text, other=''):
    assert OTHER not in text
    if other:
        assert other not in text
    for number in OPERATORS.get(token, ()):
        assert number not in text


@pytest.mark.parametrize('token', reason.Reason)
class TestReasons:
    @pytest.mark.repeated
    def test_a_request_tells_nothing_of_others(self, world, cloud, token):
        uuid = world.post('r', vcpu=1, project=OWN)
        known = world.store
        cloud.process.cycle()
        record = known.request(uuid)
        ended = dataclasses.replace(
            record,
            request=dataclasses.replace(
                record.request, state=request.State.FAILED
            ),
            why=why_of(token),
        )
        cloud.operations._require_newest_request = lambda _: ended
        url = f'/fairness/requests/{uuid}'
        is_clean(token, cloud.ask('alice', 'GET', url).text)
        shown = cloud.ask('admin', 'GET', url).json['request']
        assert shown['explanation'] == why_of(token).sentence
        alice = test_with_interface.Terminal(cloud, 'alice')
        code, out = alice.run(commands.ShowRequest, uuid)
        assert code == 0
        is_clean(token, out)

    @pytest.mark.repeated
    def test_a_leaving_server_reveals_nothing_of_other_projects(
        self, world, cloud, token, node
    ):
        leave, other = leave_of(world, cloud, token)
        urls = ('requests', f'requests/{leave.server}', 'preemptions',
                f'preemptions/{leave.uuid}')  # fmt: skip
        for url in urls:
            answer = cloud.ask('alice', 'GET', f'/fairness/{url}')
            assert answer.status_code == 200
            assert leave.server in answer.text
            is_clean(token, answer.text, other)
        alice = test_with_interface.Terminal(cloud, 'alice')
        for command in (commands.ListPreemption, commands.ListRequest):
            _, out = alice.run(command)
            is_clean(token, out, other)
        # The metadata of the server, and what its guest is told.
        epoch = world.store.leader().epoch
        leaves = world.store.leaves
        with cycle_evictions.follow_evictions(
            leaves, (), world.now
        ) as leaving:
            cloud.process._leaving.advance_evictions(
                cloud.process.nova.servers(world.now), leaving, epoch
            )
        metadata = world.cloud.servers[leave.server]['metadata']
        assert metadata[notice_channels.LEAVES_WHY]
        is_clean(token, json.dumps(metadata), other)
        told = cloud.operations.notices([leave.server])['notices']
        node.say(**{'vm-1': told[leave.server]})
        [(_, written)] = node.written
        assert written == told[leave.server]
        is_clean(token, json.dumps(written), other)

    @pytest.mark.repeated
    def test_notifications_tell_nothing_of_others(self, world, cloud, token):
        leave, other = leave_of(world, cloud, token)
        [own] = world.store.requests(frozenset(request.State))[:1]
        at_risk = risk.EvictionRisk(
            's', OWN, 'u', risk.RiskState.AT_RISK, why_of(token), 1.0, 1.0
        )
        mine = dataclasses.replace(own.request, project=OWN)
        heard = [
            observe.notice(mine, why_of(token), 1.0, 'c1'),
            observe.eviction_notice(leave, 'c1'),
            observe.risk_notice(at_risk, 'c1'),
        ]
        for notice in heard:
            is_clean(token, json.dumps(notice.payload), other)
        wanted = reason.Audience.OPERATOR
        all_of_it = observe.eviction_notice(leave, 'c1', wanted)
        assert all_of_it.payload['for_request'] == other
        assert all_of_it.payload['explanation'] == leave.why.sentence


def test_the_owner_of_a_preemptor_reads_the_name_of_the_request(world, cloud):
    world.post('x', project=OWN)
    leave, other = leave_of(world, cloud, reason.Reason.MAKES_ROOM)
    api_cloud.TOKENS['they'] = {
        'user_id': 'x', 'project_id': OTHER, 'roles': api_cloud.MEMBER,
    }  # fmt: skip
    try:
        url = f'/fairness/preemptions/{leave.uuid}'
        told = cloud.ask('they', 'GET', url).json['preemption']
        listed = cloud.ask('they', 'GET', '/fairness/preemptions')
    finally:
        del api_cloud.TOKENS['they']
    assert listed.json['preemptions'] == [told]
    assert (told['for_request'], told['for_project']) == (other, OTHER)
    assert OWN not in json.dumps(told)
    assert leave.server not in json.dumps(told)


def test_an_uninvolved_project_sees_no_preemption(world, cloud):
    leave, _ = leave_of(world, cloud, reason.Reason.MAKES_ROOM)
    for uuid in (leave.uuid, leave.server):
        url = f'/fairness/preemptions/{uuid}'
        assert cloud.ask('carol', 'GET', url).status_code == 404


def test_private_flavors_are_told_only_to_their_users(world, cloud):
    world.cloud.private_flavors = {'nine': [OWN]}
    cloud.process.cycle()

    def told(who):
        answer = cloud.ask(who, 'GET', '/fairness/capacity').json['capacity']
        return [each['name'] for each in answer['flavors']]

    assert told('alice') == ['nine', 'two']
    assert told('carol') == ['two']
    assert told('admin') == told('auditor') == ['nine', 'two']


def answers(operations, audience):
    """What the service says, by method: one of each list."""
    one = {
        'list_requests': operations.requests(None, None, 1, None, audience),
        'list_preemptions': operations.preemptions(None, None, 1, audience),
        'list_shares': operations.shares(None, None, 1),
        'list_limits': operations.limits(None, None, 1),
        'list_groups': operations.groups(None, None, 1),
        'list_prices': operations.prices(None, None, 1),
    }
    found = {
        name: next(each for each in said.values() if isinstance(each, list))
        for name, said in one.items()
    }
    return {**found, 'get_capacity': [operations.capacity('')]}


@pytest.mark.parametrize('audience', reason.Audience)
def test_the_release_before_reads_texts_of_each_audience(
    world, cloud, audience
):
    leave_of(world, cloud, reason.Reason.MAKES_ROOM)
    cloud.operations.create_group(OWN, 'web', 2.0, 1)
    cloud.operations.set_limits(OWN, {'budget': 5.0})
    cloud.process.cycle()
    for name, listed in answers(cloud.operations, audience).items():
        assert listed, name
        for each in listed:
            told = json.loads(json.dumps(each))
            schema = test_other_releases.BEFORE[name]
            validation.AnswerReader(schema).read(told, 'answer')
