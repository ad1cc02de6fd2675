# SPDX-License-Identifier: Apache-2.0

"""Names in place of IDs."""

import pytest

from nova_fairness.client import naming

RED, ALICE, LDAP = 'a1' * 16, 'b2' * 16, 'c3' * 32
WEB = '53a7a2a1-7d4e-4a55-9d3c-2a8f9d0a1c11'
NAMES = {RED: 'red', ALICE: 'alice', LDAP: 'lena', WEB: 'web\nroot'}


@pytest.mark.parametrize(
    ('text', 'told'),
    [
        (f'it asks for 4 VCPU of {RED}, which', 'it asks for 4 VCPU of red,'),
        (f'requests of {RED}/{ALICE} start', 'requests of red/alice start'),
        (f'its owner {LDAP} uses', 'its owner lena uses'),
        (f'Server {WEB} leaves.', r'Server web\nroot leaves.'),
        (f'of {"f" * 32}', f'of {"f" * 32}'),
        (f'{RED}f x{RED} {RED}-1', f'{RED}f x{RED} {RED}-1'),
        ('no host has GPU', 'no host has GPU'),
    ],
)
def test_a_sentence_has_names_for_known_ids(text, told):
    assert naming.sentence(text, NAMES.get).startswith(told)


@pytest.mark.parametrize(
    ('given', 'told'),
    [
        (RED, 'red'),
        (f'{RED}/{ALICE}', 'red/alice'),
        (f'{RED}/x', 'red/x'),
        ('physics', 'physics'),
    ],
)
def test_an_account_has_names_for_known_ids(given, told):
    assert naming.account(given, NAMES.get) == told
