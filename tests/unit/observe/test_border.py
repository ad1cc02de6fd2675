# SPDX-License-Identifier: Apache-2.0

"""What is told of hosts between batch and cloud, as the page says."""

import json
import re

from nova_fairness.model import border as border_module
from nova_fairness.observe import border
from nova_fairness.observe import notices
from nova_fairness.observe import queue
from tests.fixtures import border as border_fixture
from tests.fixtures import documented
from tests.fixtures import manual_fields

PAGE = 'notifications-hosts.rst'


def told(event):
    state = next(s for s, e in border_module.STEPS.items() if event in e)
    node = border_fixture.node('h1', state.value)
    cause = border_module.HostCause.OPERATOR
    return border.notice(node.stepped(event, 60.0, cause, 'so', 90.0), 'c1')


def test_the_page_names_every_event_and_every_field():
    page = manual_fields.page_with_schemas(PAGE)
    said = re.findall(r'^``(fairness\.host\.\w+)``$', page, re.MULTILINE)
    found = [told(event) for event in border_module.HostEvent]
    assert sorted(said) == sorted(each.event for each in found)
    fields = documented.documented_fields(page)
    for each in found:
        payload = json.loads(json.dumps(each.payload))
        assert payload.keys() == fields.keys()
        for name, value in payload.items():
            assert documented.has_documented_type(value, fields[name]), name
        text = page.split(f'``{each.event}``\n')[1].split('\n``')[0]
        warns = each.priority == notices.WARN
        assert ('Priority ``warn``' in text) == warns


def test_a_process_that_does_not_act_knows_no_host():
    idle = border.BorderStatus({('ask', 'demand'): 1})
    collector = queue.QueueCollector(None, None, lambda: idle)
    names = [each.name for each in collector.collect()]
    assert names == ['nova_fairness_partition_steps']
