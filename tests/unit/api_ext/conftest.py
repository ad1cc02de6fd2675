# SPDX-License-Identifier: Apache-2.0

"""A cloud for each test."""

import pytest

from tests.unit.api_ext import fake_cloud


@pytest.fixture
def cloud(tmp_path):
    return fake_cloud.FakeCloud(tmp_path)
