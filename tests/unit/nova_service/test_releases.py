# SPDX-License-Identifier: Apache-2.0

"""How this process runs by threads beside each release of Nova."""

import importlib
import os
import sys
import types

import pytest

from nova_fairness.nova_service import releases


@pytest.fixture
def chosen(monkeypatch):
    """Who chose threads, in a process that has not yet done so."""
    made = []
    backend = types.SimpleNamespace(
        BackendType=types.SimpleNamespace(THREADING='threading'),
        init_backend=lambda kind: made.append(f'oslo: {kind}'),
    )
    nova = types.SimpleNamespace(
        patch=lambda backend: made.append(f'Nova: {backend}')
    )
    fakes = {'oslo_service.backend': backend, 'nova.monkey_patch': nova}
    monkeypatch.setattr(importlib, 'import_module', fakes.__getitem__)
    monkeypatch.setenv(releases._UNPATCHED, 'false')
    return made


@pytest.mark.parametrize(
    ('version', 'who'),
    [
        ('', 'oslo'),
        ('30.1.0', 'oslo'),
        ('31.3.1', 'oslo'),
        ('32.2.1', 'oslo'),
        ('33.0.2', 'oslo'),
        ('34.0.0', 'Nova'),
        ('35.0.0', 'Nova'),
    ],
)
def test_the_release_decides_whether_nova_selects_threading(
    chosen, monkeypatch, version, who
):
    monkeypatch.setattr(releases, 'release', lambda: version)
    monkeypatch.delitem(sys.modules, 'eventlet', raising=False)
    releases.use_native_threads()
    assert chosen == [f'{who}: threading']
    assert os.environ[releases._UNPATCHED] == 'true'


def test_where_eventlet_is_imported_nova_would_refuse(chosen, monkeypatch):
    monkeypatch.setattr(releases, 'release', lambda: '34.0.0')
    monkeypatch.setitem(sys.modules, 'eventlet', types.ModuleType('eventlet'))
    releases.use_native_threads()
    assert chosen == ['oslo: threading']


@pytest.mark.parametrize(
    ('version', 'number'), [('', 0), ('31.3.1', 31), ('34.0.0.0rc1', 34)]
)
def test_the_release_number_of_nova_is_read(version, number):
    assert releases.release_number(version) == number
