# SPDX-License-Identifier: Apache-2.0

import dataclasses

import pytest

from nova_fairness.cluster.border import departure_notices
from nova_fairness.model import border as border_module
from tests.fixtures import border
from tests.fixtures import fake_cloud

NOW, UNTIL = 1_000.0, 5_000.4


class Told:
    """A cloud with a server on each of two hosts, and a directory."""

    def __init__(self, place):
        self.place = place
        self.cloud = fake_cloud.FakeCloud()
        self.servers = {}
        for host in ('a', 'b'):
            self.cloud.add_host(f'c-{host}', 8)
            uuid = fake_cloud.name_uuid(f's-{host}')
            self.cloud.add_server(uuid)
            self.cloud.build(uuid, f'c-{host}', {'VCPU': 1})
            self.servers[host] = uuid
        self.begin()

    def begin(self):
        self.telling = departure_notices.DepartureNotices(
            self.cloud.apis.nova, self.place
        )

    def tell(self, **states):
        """Hosts ``a`` and ``b`` in some states, with what lies there."""
        nodes = []
        for host, state in ({'a': 'cloud', 'b': 'cloud'} | states).items():
            until = UNTIL if state.startswith('leaving') else None
            node = border.node(host, state, 8, until=until)
            here = border.usage_at(
                border.work(self.servers[host]),
                # A claim of Placement that is no server.
                border.work('claim', cores=0.0),
            )
            nodes.append((node, border.CLOSED, here))
        return self.telling.tell(border.snapshot(*nodes), NOW)

    def metadata(self, host):
        return self.cloud.servers[self.servers[host]].get('metadata', {})

    def files(self):
        return {
            str(path.relative_to(self.place)): path.read_text()
            for path in self.place.rglob('*')
            if path.is_file()
        }


@pytest.fixture
def told(tmp_path):
    return Told(tmp_path)


TTL = {'TTL': '5000', 'fairness:ttl': '5000'}


def test_servers_of_a_host_that_is_left_read_until_when(told):
    assert told.tell(a='leaving_cloud') == []
    assert told.metadata('a') == TTL
    assert told.metadata('b') == {}


@pytest.mark.parametrize('state', ['cloud', 'batch_asked', 'batch'])
def test_they_read_it_no_more_when_the_host_stays(told, state):
    told.tell(a='leaving_cloud')
    told.tell(a=state)
    assert told.metadata('a') == {}


def test_nova_is_asked_only_for_news(told):
    told.tell(a='leaving_cloud')
    before = len(told.cloud.asked)
    told.tell(a='leaving_cloud')
    assert len(told.cloud.asked) == before


def test_a_process_that_takes_over_knows_the_told_notices(told):
    told.tell(a='leaving_cloud')
    told.begin()
    told.tell(a='cloud')
    assert told.metadata('a') == {}


def test_a_process_that_leads_again_reads_notices_again(told):
    other = Told.__new__(Told)
    other.__dict__.update(told.__dict__)
    told.tell()
    other.begin()
    other.tell(a='leaving_cloud')
    told.telling.forget()
    told.tell()
    assert told.metadata('a') == {}


def test_metadata_of_the_owner_stay(told):
    told.cloud.servers[told.servers['a']]['metadata'] = {'TTL': 'mine'}
    told.tell(a='leaving_cloud')
    assert told.metadata('a') == {'TTL': 'mine'}
    told.tell(b='leaving_cloud')
    told.metadata('b')['TTL'] = 'mine'
    told.tell()
    assert told.metadata('b')['TTL'] == 'mine'


def test_a_server_that_is_gone_is_no_fault(told):
    told.tell(a='leaving_cloud')
    told.cloud.remove(told.servers['a'])
    assert told.tell() == []


def test_while_nova_is_away_it_is_said_and_told_later(told):
    told.cloud.broken['GET /servers'] = 503
    assert 'are not told their time to live' in told.tell(a='leaving_cloud')[0]
    told.cloud.broken.clear()
    told.tell()
    told.cloud.broken['POST /servers'] = 503
    [said] = told.tell(a='leaving_cloud')
    assert f'server {told.servers["a"]} is not told' in said
    told.cloud.broken.clear()
    assert told.tell(a='leaving_cloud') == []
    assert told.metadata('a') == TTL


def test_a_server_without_room_for_metadata_is_asked_once(told, caplog):
    told.cloud.broken['POST /servers'] = 403
    assert told.tell(a='leaving_cloud') == []
    before = len(told.cloud.asked)
    told.tell(a='leaving_cloud')
    assert len(told.cloud.asked) == before
    assert 'is not told' in caplog.text


@pytest.mark.parametrize('state', ['leaving_cloud', 'leaving_batch'])
def test_jobs_read_files_of_their_host(told, state):
    told.tell(a=state)
    assert told.files() == {
        'b-a/total_cpu': '8',
        'b-a/shutdowntime': '5000',
        'b-b/total_cpu': '8',
    }
    for path in told.place.rglob('*'):
        assert path.stat().st_mode & 0o044 == 0o044
    told.tell()
    assert 'b-a/shutdowntime' not in told.files()


def test_files_of_a_host_that_is_gone_go_and_others_stay(told):
    told.tell()
    told.place.joinpath('b-b/notes').write_text('mine')
    told.place.joinpath('b-a/notes').write_text('mine')
    host = border_module.SharedHost('c', 'b-c', 'c-c', 2.5)
    told.telling.tell(
        border_module.Snapshot(
            (border_module.BorderHost(host),),
            border_module.SideSnapshot(),
            border_module.SideSnapshot(),
        ),
        NOW,
    )
    assert told.files() == {
        'b-a/notes': 'mine',
        'b-b/notes': 'mine',
        'b-c/total_cpu': '2.5',
    }


def test_names_that_lead_elsewhere_and_full_disks_are_said(told):
    node = border.node('a')
    host = dataclasses.replace(node.host, batch='../x')
    odd = dataclasses.replace(node, host=host)
    empty = border_module.SideSnapshot()
    snapshot = border_module.Snapshot((odd,), empty, empty)
    assert told.telling.tell(snapshot, NOW) == [
        "no directory can be called '../x'"
    ]
    told.place.joinpath('b-b').write_text('no directory')
    [said] = told.tell()
    assert 'machine features of b-b are not written' in said
    told.place.joinpath('b-b').unlink()
    told.telling = departure_notices.DepartureNotices(
        told.cloud.apis.nova, told.place / 'gone'
    )
    [said] = told.tell()
    assert 'machine features cannot be written' in said


def test_without_a_directory_no_file_is_written(told):
    told.telling = departure_notices.DepartureNotices(told.cloud.apis.nova)
    assert told.tell(a='leaving_cloud') == []
    assert told.files() == {}
    assert told.metadata('a') == TTL
