# SPDX-License-Identifier: Apache-2.0

"""Which notifications are hints."""

import json
import threading

import pytest

from nova_fairness.relay import hints
from nova_fairness.relay import link
from nova_fairness.relay import topology


@pytest.mark.parametrize(
    ('event', 'is_hint'),
    [
        ('instance.delete.end', True),
        ('instance.live_migration_post_dest.end', True),
        ('instance.create.error', True),
        ('compute_task.build_instances.error', True),
        ('service.update', True),
        ('instance.delete.start', False),
        ('keypair.create.end', False),
        ('', False),
    ],
)
def test_an_event_that_may_have_made_room_is_a_hint(event, is_hint):
    told = {'message_id': 'm1', 'event_type': event, 'payload': {}}
    body = {'oslo.version': '2.0', 'oslo.message': json.dumps(told)}
    given = []
    job = hints.HintListener(
        '', topology.Places(), threading.Event(), lambda: given.append(event)
    )
    came = link.Delivery('q', 'k', json.dumps(body).encode(), {}, 1)
    job.process(None, came)
    assert bool(given) is is_hint


@pytest.mark.parametrize('body', [b'', b'\xff\xfe', b'event_type' * 1000])
def test_a_malformed_notification_is_no_hint(body):
    job = hints.HintListener(
        '', topology.Places(), threading.Event(), pytest.fail
    )
    job.process(None, link.Delivery('q', 'k', body, {}, 1))
