# SPDX-License-Identifier: Apache-2.0

"""What is worth a notification, and that the page says the same."""

import dataclasses
import json
import re

import numpy as np
import pytest

from nova_fairness.model import caller
from nova_fairness.model import report
from nova_fairness.model import resources
from nova_fairness.observe import notices
from tests.fixtures import documented
from tests.fixtures import manual_fields
from tests.unit.agent import fake_host

PAGE = 'notifications.rst'
EVENT = re.compile(r'^(fairness\.[\w.]+)\n=+\n', re.MULTILINE)
SMALLEST = np.full(len(resources.CONTROLS), 20**-0.5)
CPU = resources.CONTROLS.index(resources.ResourceControl.CPU)


@pytest.fixture
def host(tmp_path):
    return fake_host.FakeHost(
        tmp_path,
        fake_host.vm('a-1', 'ann', display_name='web'),
        fake_host.vm('b-2', 'bob'),
    )


@pytest.fixture
def done(host):
    return host.rounds(3)


def told(before, *rounds, smallest=SMALLEST):
    """What the rounds after the first are worth."""
    watch = notices.RoundWatch()
    assert watch.notices(before, smallest) == ()
    return [item for done in rounds for item in watch.notices(done, smallest)]


def events(found):
    return [item.event for item in found]


def hearing(done, *hosts, left_out=()):
    """A round that uses the reports of some peers."""
    own = done.measured.view.reports[done.node.host]
    view = report.View(
        dict.fromkeys(sorted((done.node.host, *hosts)), own),
        {},
        dict(left_out),
    )
    return dataclasses.replace(
        done, measured=dataclasses.replace(done.measured, view=view)
    )


def weighing(done, *cpu_weights):
    """A round that gave the VMs some weights of their CPU."""
    weights = np.ones_like(done.decided.weights)
    weights[:, CPU] = cpu_weights
    return dataclasses.replace(
        done, decided=dataclasses.replace(done.decided, weights=weights)
    )


def test_an_unchanged_round_sends_no_notification(done):
    assert told(done, done, dataclasses.replace(done, number=4)) == []


def test_a_changed_metric_or_policy_is_notified_with_the_earlier_one(done):
    chosen = dataclasses.replace(
        done,
        metric='UniformMetric',
        policy='thesis',
        epoch=7,
        chosen_by=caller.Asker('c1', 'u-9', 'req-1'),
    )
    metric, policy = told(done, chosen, chosen)
    assert (metric.event, metric.priority) == ('fairness.metric.set', 'info')
    assert metric.payload == {
        'version': '1.1',
        'host': 'fake',
        'round': 3,
        'at': '1970-01-01T00:00:00Z',
        'metric': 'UniformMetric',
        'previous': 'DominantShareMetric',
        'epoch': 7,
        'caller': 'c1',
        'user_id': 'u-9',
        'request_id': 'req-1',
    }
    assert policy.event == 'fairness.policy.set'
    assert policy.payload['previous'] == 'feedback'


def test_a_pause_and_its_end_are_notified_once(done):
    by = caller.Asker('', 'u-9', 'req-1')
    paused = dataclasses.replace(done, paused=True, paused_by=by)
    found = told(done, paused, paused, done, done)
    assert events(found) == ['fairness.host.pause', 'fairness.host.resume']
    assert found[0].payload['caller'] is None
    assert found[0].payload['user_id'] == 'u-9'
    assert found[0].payload['request_id'] == 'req-1'


def test_a_plugin_entering_quarantine_is_notified(done):
    wild = dataclasses.replace(done, quarantined={'Wild': 'raised'})
    (found,) = told(done, wild, wild, done)
    assert found.event == 'fairness.plugin.quarantined'
    assert found.priority == 'warn'
    assert found.payload['reason'] == 'raised'


def test_appearing_and_vanishing_peers_are_notified(done):
    found = told(
        hearing(done, 'n2', 'n3'),
        hearing(done, 'n3', left_out={'n2': 'silent for 40 s'}),
        hearing(done, left_out={'n3': 'measures X', 'n2': 'silent for 50 s'}),
        hearing(done, 'n2', 'n3', 'n4'),
    )
    assert events(found) == [
        'fairness.peer.lost',
        'fairness.peer.lost',
        'fairness.peer.found',
    ]
    assert [item.payload['peers'] for item in found] == [
        [{'host': 'n2', 'reason': 'silent'}],
        [{'host': 'n3', 'reason': 'other_metric'}],
        [{'host': 'n2'}, {'host': 'n3'}, {'host': 'n4'}],
    ]


def test_peers_are_not_lost_while_nothing_is_measured(done):
    before = hearing(done, 'n2')
    blind = dataclasses.replace(done, measured=None, decided=None)
    assert told(before, blind, before) == []


def test_a_large_domain_fits_into_one_notification(done):
    names = [f'n{number:04d}' for number in range(2000)]
    (found,) = told(hearing(done), hearing(done, *names))
    assert found.payload['peers_count'] == 2000
    assert len(found.payload['peers']) == notices.MOST_PEERS
    assert len(json.dumps(found.payload)) < 2**16


def test_a_vm_is_throttled_once_and_relieved_once(done):
    series = (1.0, 0.3, 0.25, 0.2, 0.26, 0.25, 0.27, 0.28, 0.26)
    rounds = [weighing(done, weight, 1.0) for weight in series]
    throttled, relieved = told(*rounds)
    assert throttled.event == 'fairness.instance.throttled'
    assert throttled.payload['uuid'] == 'a-1'
    assert throttled.payload['name'] == 'web'
    assert throttled.payload['control'] == 'cpu'
    assert throttled.payload['weight_ratio'] == 0.25
    assert throttled.payload['level_ratio'] == 0.25
    assert relieved.event == 'fairness.instance.relieved'
    assert relieved.payload['weight_ratio'] == 0.28


def test_the_smallest_weight_always_counts_as_throttled(done):
    rounds = [weighing(done, weight, 1.0) for weight in (1.0, 0.5)]
    (found,) = told(*rounds, smallest=np.full_like(SMALLEST, 0.5))
    assert found.payload['level_ratio'] == 0.5
    assert told(*rounds) == []


def test_unwritten_weights_throttle_no_vm(host, done):
    low = weighing(done, 0.1, 1.0)
    assert told(done, dataclasses.replace(low, enforced=False)) == []
    none = dataclasses.replace(low.decided, wanted={})
    assert told(done, dataclasses.replace(low, decided=none)) == []


def test_a_pause_relieves_and_a_vm_that_went_is_not_told(host, done):
    low = weighing(done, 0.1, 0.1)
    paused = dataclasses.replace(low, enforced=False)
    assert events(told(done, low, paused)) == [
        *['fairness.instance.throttled'] * 2,
        *['fairness.instance.relieved'] * 2,
    ]
    host.inventory.vms = host.inventory.vms[1:]
    left = weighing(host.rounds(2), 0.1)
    assert events(told(done, low, left)) == ['fairness.instance.throttled'] * 2


def test_a_restarted_agent_does_not_repeat_old_news(done):
    low = weighing(hearing(done, 'n2'), 0.1, 1.0)
    assert told(low, low) == []


def every_kind(done):
    """One of each event that there is."""
    changed = dataclasses.replace(
        done,
        metric='X',
        policy='Y',
        paused=True,
        chosen_by=caller.Asker('c1', 'u-9', 'req-1'),
        paused_by=caller.Asker('c1', 'u-9', 'req-2'),
        quarantined={'Wild': 'raised'},
    )
    low = weighing(done, 0.1, 1.0)
    return [
        *told(done, changed, done),
        *told(hearing(done, 'n2'), hearing(done), hearing(done, 'n2')),
        *told(done, low, done),
    ]


def fields(payload):
    for name, value in payload.items():
        yield name, value
        for item in value if isinstance(value, list) else ():
            yield from ((f'{name}[].{key}', one) for key, one in item.items())


def test_the_page_names_every_event_with_every_field_and_type(done):
    page = manual_fields.page_with_schemas(PAGE)
    common, *rest = EVENT.split(page)
    always = documented.documented_fields(common)
    said = {
        event: always | documented.documented_fields(text)
        for event, text in zip(rest[::2], rest[1::2], strict=True)
    }
    found = every_kind(done)
    assert {item.event for item in found} == set(said)
    for item in found:
        told_fields = dict(fields(item.payload))
        assert told_fields.keys() == said[item.event].keys(), item.event
        for name, value in told_fields.items():
            assert documented.has_documented_type(
                value, said[item.event][name]
            ), name
        text = page.split(f'{item.event}\n=')[1]
        assert f'Priority ``{item.priority}``' in text.split('\n\n')[1]
    assert f'``{notices.VERSION}``' in common
