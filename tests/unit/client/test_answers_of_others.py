# SPDX-License-Identifier: Apache-2.0

"""Every command with answers that name odd things, or of other releases."""

import configparser
import importlib
import pathlib
import re

from osc_lib import exceptions
import pytest
import requests_mock

from api_ext import routes
from tests.fixtures import schema_samples
from tests.unit.client import fake_compute

TOP = pathlib.Path(__file__).parents[3]
UUID = '11111111-2222-4111-8111-111111111111'
POISON = 'x\nINFO y\x1b[31m\u202egnp\ud800\x9b'
HOSTILE = re.compile('[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]')
WORDS = {
    'fairness_metric_set': ('M', '--all'),
    'fairness_policy_set': ('P', '--all'),
    'fairness_host_show': ('h1',),
    'fairness_group_set': ('web', '--rate', '1'),
    'fairness_group_create': ('web', '--rate', '1'),
    'fairness_limit_set': (UUID, '--budget', '5'),
    'fairness_limit_unset': (UUID, '--budget'),
    'fairness_share_set': (UUID, '2'),
    'fairness_request_extend': (UUID, '1h'),
    'fairness_partition_target': ('1',),
    'fairness_plan_create': ('--empty', 'h1'),
}
"""Words of commands that take others than one name."""


def commands():
    found = configparser.ConfigParser()
    found.read(TOP / 'setup.cfg')
    listed = found['entry_points']['openstack.fairness.v1']
    for line in listed.strip().splitlines():
        name, _, target = line.partition(' = ')
        module, _, made = target.partition(':')
        yield name, getattr(importlib.import_module(module), made)


COMMANDS = dict(commands())


def words(name, command):
    if name in WORDS:
        return WORDS[name]
    parser = command(None, None).get_parser('openstack')
    names = [each for each in parser._actions if not each.option_strings]
    return (UUID,) * len(names)


def answered(change):
    """What the interface answers to a request, changed."""

    def answer(request, context):
        path = request.path.partition('/fairness')[2]
        method = request.method
        route = routes.find_routes(f'/fairness{path}').by_method[method]
        value = schema_samples.sample(route.answer, POISON)
        for key in [key for key in value if key.endswith('_links')]:
            del value[key]
        return change(value, route.answer)

    return answer


def run(name, *more, change=lambda value, _: value):
    with requests_mock.Mocker() as mock:
        terminal = fake_compute.FakeCompute(mock)
        terminal.servers = {POISON: UUID}
        own = re.compile(re.escape(terminal.base))
        for method in ('GET', 'POST', 'PUT'):
            mock.request(method, own, json=answered(change))
        command = COMMANDS[name]
        return terminal.run(command, *words(name, command), *more)[1]


@pytest.mark.parametrize('form', ['table', 'value', 'csv', 'json'])
@pytest.mark.parametrize('name', COMMANDS)
def test_a_command_writes_nothing_that_a_terminal_obeys(name, form, caplog):
    list_forms = ('table', 'value', 'csv', 'json')
    is_list = '_list' in name or '_history' in name
    if form == 'csv' and not is_list:
        form = 'shell'
    assert form in (*list_forms, 'shell')
    try:
        out = run(name, '-f', form)
    except SystemExit:
        # An action makes a table of hosts as well.
        out = run(name, '-f', 'csv' if form == 'shell' else 'table')
    assert not HOSTILE.search(out)
    for message in caplog.messages:
        assert message.isprintable()


@pytest.mark.parametrize('name', COMMANDS)
def test_an_error_is_one_plain_line(name):
    with requests_mock.Mocker() as mock:
        terminal = fake_compute.FakeCompute(mock)
        terminal.servers = {POISON: UUID}
        own = re.compile(re.escape(terminal.base))
        said = {'conflictingRequest': {'code': 409, 'message': POISON}}
        for method in ('GET', 'POST', 'PUT'):
            mock.request(method, own, json=said, status_code=409)
        command = COMMANDS[name]
        if name == 'fairness_server_list':
            return
        with pytest.raises(exceptions.CommandError) as found:
            terminal.run(command, *words(name, command))
    assert str(found.value).isprintable()


@pytest.mark.parametrize('name', COMMANDS)
def test_a_command_reads_a_newer_interface(name):
    run(name, change=schema_samples.with_more)


@pytest.mark.repeated
@pytest.mark.parametrize('name', COMMANDS)
def test_a_command_reads_an_interface_that_says_less(name):
    """What is listed or shown must be there, and nothing of it."""
    value = {}

    def keep(found, _):
        value.update(found)
        return found

    run(name, change=keep)
    for path in list(schema_samples.paths(value)):
        if len(path) > 1:
            run(
                name,
                change=lambda found, _, path=path: lacking(found, path),
            )


def lacking(found, path):
    try:
        return schema_samples.without_field(found, path)
    except (KeyError, IndexError):
        return found


ODD = (None, 7, 1.5, 'x', [None], {'a': [1]})


@pytest.mark.repeated
@pytest.mark.parametrize('odd', ODD, ids=str)
@pytest.mark.parametrize('name', COMMANDS)
def test_an_answer_of_another_form_is_one_plain_line_at_most(name, odd):
    value = {}

    def keep(found, _):
        value.update(found)
        return found

    run(name, change=keep)
    for path in [(key,) for key in value] + [
        path for path in schema_samples.paths(value) if len(path) == 3
    ]:
        said = ''
        try:
            run(name, change=lambda found, _, at=path: other(found, at, odd))
        except exceptions.CommandError as error:
            said = str(error)
        assert said.isprintable()


def other(found, path, odd):
    """An answer with something else in one place."""
    inner = found
    try:
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = odd
    except (KeyError, IndexError, TypeError):
        return found
    return found
