# SPDX-License-Identifier: Apache-2.0

"""What Nova is to an agent."""

import threading

from nova_fairness.model import instance
from nova_fairness.nova_service import service

ENOUGH_S = 60  # for broken code only
DESCRIPTION = instance.Description('ann', 'p', 'web', 'small', {}, 2**27)


def test_a_domain_is_looked_at_again_when_its_owner_is_known():
    looked_at, again = [], threading.Event()

    def look_again(uuid):
        looked_at.append(uuid)
        again.set()

    nova = service.NovaService(None, {'u-1': DESCRIPTION}.get)
    nova.start(look_again)
    try:
        assert nova.describe('u-1') is None
        assert again.wait(ENOUGH_S)
        assert looked_at == ['u-1']
        assert nova.describe('u-1') == DESCRIPTION
    finally:
        nova.stop()


def test_without_a_source_no_user_has_a_weight():
    nova = service.NovaService(None, lambda uuid: None)
    assert nova.weights(['ann']) == {}


def test_the_quota_of_vms_without_owner_is_not_asked_for():
    asked, done = [], threading.Event()

    def weigh(user):
        asked.append(user)
        done.set()
        return 2.0

    nova = service.NovaService(None, lambda uuid: None, weigh)
    nova.start(lambda uuid: None)
    try:
        assert nova.weights([instance.UNOWNED, 'ann']) == {}
        assert done.wait(ENOUGH_S)
        while not nova.weights(['ann']):
            threading.Event().wait(0.01)
        assert nova.weights(['ann', instance.UNOWNED]) == {'ann': 2.0}
        assert asked == ['ann']
    finally:
        nova.stop()
