# SPDX-License-Identifier: Apache-2.0

"""Answers of services and agents of other releases.

``tests/data/answers`` has the schemas of answers as a release had them. A
field that a later release adds to an answer is marked with ``since``; none of
those of the release before goes away.
"""

import json
import math
import pathlib

import jsonschema
import pytest

from api_ext import faults
from api_ext import validation
from api_ext.handlers import capacity as capacity_handler
from api_ext.handlers import group as group_handler
from api_ext.handlers import instance as instance_handler
from api_ext.handlers import limit as limit_handler
from api_ext.handlers import partition as partition_handler
from api_ext.handlers import plan as plan_handler
from api_ext.handlers import preemption as preemption_handler
from api_ext.handlers import price as price_handler
from api_ext.handlers import request as request_handler
from api_ext.handlers import service
from api_ext.handlers import share as share_handler
from api_ext.schemas import capacity
from api_ext.schemas import group
from api_ext.schemas import instance
from api_ext.schemas import limit
from api_ext.schemas import partition
from api_ext.schemas import parts
from api_ext.schemas import plan
from api_ext.schemas import preemption
from api_ext.schemas import price
from api_ext.schemas import request
from api_ext.schemas import share
from nova_fairness import exception
from tests.fixtures import schema_samples
from tests.unit.api_ext import fake_cloud
from tests.unit.api_ext import fake_requests

BEFORE = json.loads(
    (pathlib.Path(__file__).parents[2] / 'data/answers/1.7.json').read_text(
        'utf-8'
    )
)
NOW = {
    'list_requests': request.ITEM,
    'get_capacity': capacity.ITEM,
    'list_shares': share.ITEM,
    'list_preemptions': preemption.ITEM,
    'list_limits': limit.ITEM,
    'set_limits': limit.DONE,
    'set_share': share.DONE,
    'list_groups': group.ITEM,
    'list_prices': price.ITEM,
    'list_plans': plan.PLAN,
    'get_plan': plan.PLAN_IN_FULL,
    'get_border': partition.BORDER,
    'list_border_hosts': partition.HOST,
    'get_border_host': partition.HOST_IN_FULL,
    'set_target': partition.TARGET,
    'get_instance': instance.ITEM,
}


def text_of(name):
    # Patterns are those of accounts, whose names are in the same answers.
    return '0 20 * * *' if name == 'list_limits' else 'x'


def before(name):
    return schema_samples.sample(BEFORE[name], text_of(name))


def test_every_answer_of_the_release_before_is_known():
    assert set(BEFORE) == set(NOW)


@pytest.mark.parametrize('name', BEFORE)
def test_an_answer_of_the_release_before_is_read_in_full(name):
    value = before(name)
    jsonschema.validate(value, BEFORE[name])
    assert validation.AnswerReader(NOW[name]).read(value, 'answer') == value


@pytest.mark.parametrize('name', NOW)
def test_keys_of_a_newer_release_are_left_out_at_every_level(name):
    value = schema_samples.sample(NOW[name], text_of(name))
    more = schema_samples.with_more(value, NOW[name])
    assert more != value
    assert validation.AnswerReader(NOW[name]).read(more, 'answer') == value
    # The release before took none of it: nova-api is upgraded first.
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(more, BEFORE[name])


READERS = {
    'list_requests': request_handler._JUDGE,
    'get_capacity': capacity_handler._CAPACITY,
    'list_shares': share_handler._SHARE,
    'list_preemptions': preemption_handler._PREEMPTION,
    'list_limits': limit_handler._LIMIT,
    'set_limits': limit_handler._SET_LIMITS,
    'set_share': share_handler._SET_SHARE,
    'list_groups': group_handler._GROUP,
    'list_prices': price_handler._PRICE,
    'list_plans': plan_handler._PLAN,
    'get_plan': plan_handler._IN_FULL,
    'get_border': partition_handler._BORDER,
    'list_border_hosts': partition_handler._HOST,
    'get_border_host': partition_handler._IN_FULL,
    'set_target': partition_handler._TARGET,
    'get_instance': instance_handler._READER,
}


@pytest.mark.parametrize('name', NOW)
def test_a_field_that_an_older_release_does_not_say_may_be_missing(name):
    value = schema_samples.sample(NOW[name], text_of(name))
    reader = READERS[name]
    needs = set(reader._judge.schema['required'])
    assert needs <= set(NOW[name]['properties'])
    for path in schema_samples.paths(value):
        less = schema_samples.without_field(value, path)
        if path[0] in needs and len(path) == 1:
            with pytest.raises(faults.BadRequest, match='required'):
                reader.read(less, 'answer')
        else:
            assert reader.read(less, 'answer') == less


OF_LISTS = {
    'list_requests': 'requests?all_projects=true',
    'list_preemptions': 'preemptions?all_projects=true',
    'list_shares': 'shares?all_projects=true',
    'list_limits': 'limits?all_projects=true',
    'list_groups': 'groups?all_projects=true',
    'list_prices': 'prices', 'list_plans': 'plans',
    'list_border_hosts': 'partition/hosts',
}  # fmt: skip


@pytest.mark.parametrize('name', OF_LISTS)
def test_a_missing_field_gives_no_500(tmp_path, name):
    cloud = fake_cloud.FakeCloud(tmp_path)
    url = f'/fairness/{OF_LISTS[name]}'
    said = cloud.requests.rpc.call(
        None,
        name,
        **({} if name != 'list_prices' else {'audience': 'operator'}),
    )
    [(plural, items)] = [
        (key, each) for key, each in said.items() if isinstance(each, list)
    ]
    needs = READERS[name]._judge.schema['required']
    for key in items[0]:
        less = [
            {other: each[other] for other in each if other != key}
            for each in items
        ]
        cloud.requests.rpc.broken = {plural: less, 'more': True}
        code = cloud.ask('admin', 'GET', url).status_code
        assert code == (503 if key in needs else 200), key


@pytest.mark.parametrize('name', OF_LISTS)
@pytest.mark.parametrize('odd', [None, True, 7, 1.5, 'x', {}])
def test_an_answer_that_is_no_list_gives_no_500(tmp_path, name, odd):
    cloud = fake_cloud.FakeCloud(tmp_path)
    url = f'/fairness/{OF_LISTS[name]}'
    audience = {'audience': 'operator'} if name == 'list_prices' else {}
    said = cloud.requests.rpc.call(None, name, **audience)
    [plural] = [key for key, each in said.items() if isinstance(each, list)]
    cloud.requests.rpc.broken = {plural: odd, 'more': False}
    assert cloud.ask('admin', 'GET', url).status_code == 503


@pytest.mark.parametrize('number', [math.nan, math.inf, -math.inf])
def test_no_answer_contains_nan_or_infinity(number):
    schema = parts.record({'a': {'type': 'array', 'items': parts.NUMBER_MAP}})
    reader = validation.AnswerReader(schema, 'a')
    reader.read({'a': [{'b': 1.5}]}, 'answer')
    with pytest.raises(faults.BadRequest, match='not a number in JSON'):
        reader.read({'a': [{'b': number}]}, 'answer')


@pytest.mark.parametrize('name', BEFORE)
def test_no_field_of_the_release_before_went_away_or_changed(name):
    """A nova-api of the release before reads what is answered now.

    What is said beyond, it refused: see the page about upgrades.
    """
    value = schema_samples.sample(NOW[name], text_of(name))
    validation.AnswerReader(BEFORE[name]).read(value, 'answer')


def test_an_unknown_token_of_a_newer_release_is_passed_on():
    item = fake_requests.item(fake_requests.REDS, 'p', origin='rebuild')
    reader = validation.AnswerReader(request.ITEM)
    assert reader.read(item, 'answer')['origin'] == 'rebuild'
    with pytest.raises(faults.BadRequest, match='origin'):
        reader.read({**item, 'origin': 7}, 'answer')


def test_a_field_since_a_version_may_be_missing():
    schema = parts.record({'a': parts.TEXT, 'b': parts.TEXT}, since={'b': '2'})
    reader = validation.AnswerReader(schema)
    assert reader.read({'a': 'x'}, 'answer') == {'a': 'x'}
    assert reader.read({'a': 'x', 'b': 'y', 'c': 1}, 'answer') == {
        'a': 'x',
        'b': 'y',
    }
    reader = validation.AnswerReader(schema, 'a')
    for wrong in ({}, {'a': 1}, {'a': 'x', 'b': 1}, [], None):
        with pytest.raises(faults.BadRequest):
            reader.read(wrong, 'answer')


URLS = (
    'requests', f'requests/{fake_requests.REDS}', 'shares', 'limits', 'groups',
    'preemptions', f'preemptions/{fake_requests.LENT}', 'capacity',
    'prices', 'plans', f'plans/{fake_requests.PLANS[0]}', 'partition',
    'partition/hosts', 'partition/hosts/h1',
)  # fmt: skip


@pytest.mark.parametrize('url', URLS)
def test_urls_answer_the_same_with_a_newer_service(tmp_path, url):
    cloud = fake_cloud.FakeCloud(tmp_path)
    asked = f'/fairness/{url}'
    if url in ('requests', 'shares', 'limits', 'groups', 'preemptions'):
        asked += '?all_projects=true'
    first = cloud.ask('admin', 'GET', asked)
    assert first.status_code == 200
    call = cloud.requests.rpc.call
    cloud.requests.rpc.call = lambda *given, **more: with_more_fields(
        call(*given, **more)
    )
    again = cloud.ask('admin', 'GET', asked)
    assert again.status_code == 200
    assert again.json == first.json


def with_more_fields(answer):
    """Fields beside those with names, none among numbers by name."""
    numbers = (
        *('numbers', 'factors', 'resources', 'used', 'ceiling', 'nominal'),
        *('borrowing_limit', 'lending_limit', 'states', 'zones'),
    )

    def made(value, key=''):
        if isinstance(value, list):
            return [made(each) for each in value]
        if not isinstance(value, dict):
            return value
        found = {name: made(each, name) for name, each in value.items()}
        is_pair = key == 'used' and 'batch' in value
        if key in numbers and not is_pair:
            return found
        return {**found, schema_samples.ADDED: {'x': [1]}}

    return made(answer)


class OldRpc:
    """A service of version 1.7 of the calls."""

    def __init__(self, rpc):
        self.rpc = rpc
        self.asked = []

    def for_request(self, *_):
        return self

    def call(self, host, method, **given):
        known = service._ARGUMENTS_OF_1_7.get(method)
        for name in given:
            if known is not None and name not in known:
                raise exception.BadArgument(
                    f"{method}: got an unexpected keyword argument '{name}';"
                    f' expected {", ".join(known)}'
                )
        self.asked.append(method)
        return self.rpc.call(host, method, **given)


@pytest.mark.parametrize('who', ['alice', 'admin'])
def test_a_service_of_the_release_before_gets_known_arguments_only(
    tmp_path, who
):
    cloud = fake_cloud.FakeCloud(tmp_path)
    old = OldRpc(cloud.requests.rpc)
    cloud.requests.client._rpc = old
    urls = URLS if who == 'admin' else URLS[:9]
    for url in urls:
        asked = f'/fairness/{url}'
        if who == 'admin' and url in URLS[2:6]:
            asked += '?all_projects=true'
        code = cloud.ask(who, 'GET', asked).status_code
        assert code == 200, url
    assert len(old.asked) >= len(urls)


def test_an_invalid_argument_is_refused_with_older_services_too(tmp_path):
    cloud = fake_cloud.FakeCloud(tmp_path)
    cloud.requests.operations.error = exception.BadArgument('marker is none')
    answer = cloud.ask('alice', 'GET', '/fairness/capacity')
    assert answer.status_code == 400


def test_an_agent_of_a_newer_release_is_read(tmp_path):
    said = schema_samples.sample(instance.ITEM)
    more = schema_samples.with_more(said, instance.ITEM)
    read = instance_handler._shape({'instance': more, 'and': 1})
    of_others = {'host', 'request_id', 'standing'}
    assert read == {key: said[key] for key in said if key not in of_others}
