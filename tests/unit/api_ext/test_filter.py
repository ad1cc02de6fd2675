# SPDX-License-Identifier: Apache-2.0

"""What touches Nova, beside a Nova that is not there."""

import importlib
import sys
import types

from oslo_config import cfg
import pytest
import webob
import webob.dec

from api_ext import faults
from api_ext import http_request
from tests.unit.api_ext import fake_cloud

UUID = fake_cloud.ALICES


class NotFound(Exception):
    pass


class Forbidden(Exception):
    pass


class FakeComputeApi:
    """Nova's compute API with one answer."""

    answer = None
    made = 0

    def __init__(self):
        type(self).made += 1

    def get(self, context, uuid):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class FakeMiddleware:
    def __init__(self, application):
        self.application = application


def module(name, **content):
    made = types.ModuleType(name)
    vars(made).update(content)
    return made


@pytest.fixture
def nova(monkeypatch):
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    api = module('nova.compute.api', API=FakeComputeApi)
    states = module('nova.compute.task_states', MIGRATING='migrating')
    exception = module(
        'nova.exception', NotFound=NotFound, Forbidden=Forbidden
    )
    compute = module('nova.compute', api=api, task_states=states)
    wsgi = module('nova.api.wsgi', Middleware=FakeMiddleware)
    fakes = [
        api,
        states,
        exception,
        compute,
        wsgi,
        module('nova.api', wsgi=wsgi),
        module('nova.conf', CONF=conf),
    ]
    top = module('nova', exception=exception, compute=compute)
    top.conf, top.api = fakes[-1], fakes[-2]
    for fake in (top, *fakes):
        monkeypatch.setitem(sys.modules, fake.__name__, fake)
    for name in ('api_ext.location', 'api_ext.filter'):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(FakeComputeApi, 'made', 0)
    yield
    for name in ('api_ext.location', 'api_ext.filter'):
        sys.modules.pop(name, None)


@pytest.fixture
def location(nova):
    return importlib.import_module('api_ext.location').Location()


def instance(**values):
    known = {
        'host': 'cmp1',
        'user_id': 'u',
        'project_id': 'p',
        'task_state': None,
        'display_name': 'web-1',
        'vm_state': 'active',
    }
    return types.SimpleNamespace(**(known | values))


def test_nova_names_host_and_owner_of_an_instance(location, monkeypatch):
    monkeypatch.setattr(FakeComputeApi, 'answer', instance())
    expected = http_request.Owner('cmp1', 'u', 'p', 'web-1', 'active')
    assert location(None, UUID) == expected
    assert location(None, UUID) == expected
    assert FakeComputeApi.made == 1


def test_a_migrating_instance_has_no_certain_host(location, monkeypatch):
    moving = instance(task_state='migrating')
    monkeypatch.setattr(FakeComputeApi, 'answer', moving)
    assert location(None, UUID).host is None


@pytest.mark.parametrize('host', [None, ''])
def test_an_instance_without_a_host_is_located(location, monkeypatch, host):
    at_rest = instance(host=host, vm_state='shelved_offloaded')
    monkeypatch.setattr(FakeComputeApi, 'answer', at_rest)
    found = location(None, UUID)
    assert (found.host, found.state) == ('', 'shelved_offloaded')


@pytest.mark.parametrize('answer', [NotFound(), Forbidden()])
def test_an_instance_hidden_by_nova_is_not_found(
    location, monkeypatch, answer
):
    monkeypatch.setattr(FakeComputeApi, 'answer', answer)
    with pytest.raises(LookupError):
        location(None, UUID)


def test_an_error_of_nova_gives_503(location, monkeypatch):
    monkeypatch.setattr(FakeComputeApi, 'answer', OSError('secret password'))
    with pytest.raises(faults.Unavailable) as caught:
        location(None, UUID)
    assert 'secret' not in str(caught.value)


@webob.dec.wsgify
def rest_of_nova(request):
    return webob.Response('Nova itself')


def test_the_filter_answers_its_own_paths_and_passes_on_the_rest(nova):
    filter_module = importlib.import_module('api_ext.filter')
    filtered = filter_module.FairnessFilter(rest_of_nova)
    request = webob.Request.blank('/servers')
    assert request.get_response(filtered).text == 'Nova itself'
    request = webob.Request.blank('/fairness/openapi.json')
    assert request.get_response(filtered).status_code == 401
    request.environ['nova.context'] = fake_cloud.context.RequestContext(
        overwrite=False, **fake_cloud.TOKENS['alice']
    )
    answer = request.get_response(filtered)
    assert answer.json['info']['title'] == 'nova-fairness'
