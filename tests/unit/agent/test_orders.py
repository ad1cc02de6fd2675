# SPDX-License-Identifier: Apache-2.0

"""What operators order, and how long it is remembered."""

import pathlib

import pytest

from nova_fairness.agent.inputs import active_settings


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'paused.json'


def test_orders_are_empty_at_first(path):
    fresh = active_settings.SettingOrders(path)
    assert not fresh.paused
    assert not fresh.pop_reset_request()


def test_a_pause_and_its_end_outlive_the_agent(path):
    assert active_settings.SettingOrders(path).pause(paused=True) == ''
    assert active_settings.SettingOrders(path).paused
    assert active_settings.SettingOrders(path).pause(paused=False) == ''
    assert not active_settings.SettingOrders(path).paused


def test_a_reset_is_applied_once_and_not_after_a_restart(path):
    asked = active_settings.SettingOrders(path)
    asked.request_reset()
    asked.request_reset()
    assert asked.pop_reset_request()
    assert not asked.pop_reset_request()
    asked.request_reset()
    assert not active_settings.SettingOrders(path).pop_reset_request()


@pytest.mark.parametrize(
    'content', ['', '[', '[]', '{}', 'null', '{"version": 2, "paused": false}']
)
def test_an_unreadable_orders_file_means_a_pause(path, caplog, content):
    path.write_text(content)
    assert active_settings.SettingOrders(path).paused
    assert 'until it is told to resume' in caplog.text


def test_an_unsaved_pause_counts_and_is_logged():
    asked = active_settings.SettingOrders(
        pathlib.Path('/proc/no-such-place/paused.json')
    )
    assert 'cannot write' in asked.pause(paused=True)
    assert asked.paused
