# SPDX-License-Identifier: Apache-2.0


"""A host of files for the tests of this room."""

import pytest

from tests.unit.apply import fake_host


@pytest.fixture
def host(tmp_path, monkeypatch) -> fake_host.FakeHost:
    made = fake_host.FakeHost(tmp_path / 'host')
    made.let_helper_see_it(monkeypatch)
    return made
