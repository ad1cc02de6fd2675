# SPDX-License-Identifier: Apache-2.0

"""Whether an agent is a service of Nova."""

import importlib.metadata
import importlib.util

import pytest

from nova_fairness import exception
from nova_fairness.nova_service import presence


@pytest.fixture
def nova_conf(tmp_path):
    path = tmp_path / 'nova.conf'
    path.touch()
    return str(path)


@pytest.fixture
def without_nova(monkeypatch):
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)


@pytest.mark.parametrize('mode', [presence.AUTO, presence.ON])
def test_an_agent_with_nova_and_its_configuration_is_a_service(
    mode, nova_conf
):
    assert presence.should_register(mode, [nova_conf]) == (True, '')


def test_an_agent_is_no_service_if_disabled(nova_conf):
    assert not presence.should_register(presence.OFF, [nova_conf])[0]


@pytest.mark.parametrize('files', [[], ['/nonexistent/nova.conf']])
def test_an_agent_without_nova_configuration_is_no_service(files):
    wanted, why_not = presence.should_register(presence.AUTO, files)
    assert not wanted
    assert 'expected' in why_not


@pytest.mark.parametrize('files', [[], ['/nonexistent/nova.conf']])
def test_an_agent_without_nova_configuration_cannot_be_a_service(files):
    with pytest.raises(exception.ConfigurationError, match='service = on'):
        presence.should_register(presence.ON, files)


def test_without_nova_the_extra_is_named(without_nova, nova_conf):
    wanted, why_not = presence.should_register(presence.AUTO, [nova_conf])
    assert not wanted
    assert 'nova-fairness[nova]' in why_not
    with pytest.raises(exception.ConfigurationError, match=r'\[nova\]'):
        presence.should_register(presence.ON, [nova_conf])


@pytest.mark.parametrize(
    ('version', 'fault'),
    [('30.1.0', True), ('31.3.1', False), ('34.0.0', False), ('35.1', False)],
)
def test_an_older_release_is_refused(nova_conf, monkeypatch, version, fault):
    monkeypatch.setattr(importlib.metadata, 'version', lambda name: version)
    wanted, why_not = presence.should_register(presence.AUTO, [nova_conf])
    assert wanted != fault
    assert (f'Nova {version} is not supported' in why_not) == fault
