# SPDX-License-Identifier: Apache-2.0

"""Few options are for everybody, and each help says what it must."""

import re

from oslo_config import cfg
import pytest

from nova_fairness.conf import api
from nova_fairness.conf import cluster
from nova_fairness.conf import opts
from oslo_messaging_zmq import options

SERVICES = {
    'a node': [*opts.list_opts(), *options.list_opts()],
    'nova-api': api.list_opts(),
    'the cluster service': cluster.list_opts(),
}
MOST = {'a node': 23, 'nova-api': 2, 'the cluster service': 6}
MOST_OPTIONS = 150
"""By group and name, without those of the message driver."""

UNITS = (
    r'\b(seconds|bytes|intervals|no unit|in quotas|number of|'
    r'worth of|tcp port|per second|currency for)\b'
)
WHEN = (
    r'\b(raise|lower|change|set|use|leave|prefer) (it|one|this|them|both|the|a'
    r'|\S+ if|\S+ on|\S+ to|\S+ where|\S+ for)\b'
)


def every_option():
    return {
        f'{group.name if group else "DEFAULT"}.{opt.dest}': opt
        for groups in SERVICES.values()
        for group, found in groups
        for opt in found
    }


OPTIONS = every_option()


def is_number(opt):
    return isinstance(
        opt, cfg.FloatOpt | cfg.IntOpt | cfg.MultiOpt
    ) and not isinstance(opt, cfg.MultiStrOpt)


@pytest.mark.parametrize('service', SERVICES)
def test_few_options_are_for_everybody(service):
    plain = [
        opt.dest
        for _, found in SERVICES[service]
        for opt in found
        if not opt.advanced
    ]
    assert 1 <= len(plain) <= MOST[service], plain


def test_there_are_few_options():
    driver = {
        f'{group}.{opt.dest}'
        for group, found in options.list_opts()
        for opt in found
    }
    assert 100 <= len(OPTIONS.keys() - driver) <= MOST_OPTIONS


@pytest.mark.parametrize('name', OPTIONS)
def test_a_help_begins_with_its_subject_and_says_when_to_set_it(name):
    text = ' '.join(OPTIONS[name].help.split())
    assert text.endswith('.')
    assert text[0].isupper()
    assert not re.match('(The same|After|If|Those|That|Likewise) ', text)
    assert re.search(WHEN, text.lower()), text


@pytest.mark.parametrize(
    'name', [name for name, opt in OPTIONS.items() if is_number(opt)]
)
def test_a_number_has_a_unit_and_a_range(name):
    opt = OPTIONS[name]
    text = ' '.join(opt.help.split())
    assert re.search(UNITS, text.lower()), text
    if not isinstance(opt, cfg.MultiOpt):
        assert opt.type.min is not None, name
