# SPDX-License-Identifier: Apache-2.0

"""One node with three busy guests, for all tests that are here."""

import pytest

from tests.functional import agent_site


@pytest.fixture(scope='package')
def site():
    with agent_site.running('agent-a') as made:
        yield made
