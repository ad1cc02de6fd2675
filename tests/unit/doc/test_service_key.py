# SPDX-License-Identifier: Apache-2.0

"""Pages and devstack give the cluster service a key that signs."""

import pathlib
import re

from oslo_messaging_zmq.keys import admin
from oslo_messaging_zmq.keys import keyring

TOP = pathlib.Path(__file__).parents[3]
DEVSTACK = TOP / 'devstack' / 'lib' / 'nova-fairness'
SAID = re.compile(
    r'(?:service|nova-fairness-cluster)\b[^.]*?'
    r'(?:\bkey\b|\bneeds one\b|Its key)[^.]*?\brole\s+``(\w+)``'
)
"""A sentence, or two, that say which role the key of the service has."""


def sentences():
    """What pages say of the role of the service's key, by page."""
    found = {}
    for page in sorted((TOP / 'doc' / 'source').rglob('*.rst')):
        text = ' '.join(page.read_text().split()).replace(
            '. Its key', ' Its key'
        )
        roles = SAID.findall(text)
        if roles:
            found[page.name] = set(roles)
    return found


def test_pages_give_the_service_a_key_that_signs():
    said = sentences()
    assert {'queue.rst', 'keys.rst', 'nova-cloud.rst'} <= said.keys()
    wrong = {page: r for page, r in said.items() if r != {'controller'}}
    assert wrong == {}


def test_devstack_gives_the_service_a_key_that_signs(tmp_path):
    text = DEVSTACK.read_text()
    [role] = re.findall(
        r'_fairness_make_key "\$FAIRNESS_QUEUE_NAME" (\w+)', text
    )
    admin.make(tmp_path, 'queue-ctl1', role)
    ring = keyring.Keyring(tmp_path / 'queue-ctl1.secret')
    assert ring.signing_fault() == ''


def test_devstack_keys_of_one_host_have_different_names():
    text = DEVSTACK.read_text()
    names = dict(re.findall(r'^(FAIRNESS_\w+_NAME)=(.+)$', text, re.MULTILINE))
    made = re.findall(r'_fairness_make_key "\$(\w+)" (\w+)', text)
    # Of a name with two roles the second is never made.
    told = [names.get(name, name) for name, _ in made]
    assert len(told) == len(set(told)), told
    assert names['FAIRNESS_QUEUE_NAME'] != '$(hostname)'
    assert 'serves "$FAIRNESS_QUEUE_NAME" "$FAIRNESS_QUEUE_SERVER"' in text
