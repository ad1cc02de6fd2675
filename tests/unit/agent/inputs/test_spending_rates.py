# SPDX-License-Identifier: Apache-2.0

"""What owners spend for VMs: read of a file, and followed within rounds."""

import json
import types

import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness.agent.comms import peering
from nova_fairness.agent.inputs import json_file
from nova_fairness.agent.inputs import nova_facts
from nova_fairness.agent.inputs import spending_rates
from nova_fairness.model import resources
from nova_fairness.model import sample as sample_model
from nova_fairness.runtime import state_file
from nova_fairness.shares import tree as tree_module
from tests.fixtures.patience import wait_for_value
from tests.unit.agent import fake_host


def test_spending_rates_are_read_from_a_file():
    assert spending_rates.parse_rates({'a': 30, 'b': 0.5}) == {
        'a': 30.0,
        'b': 0.5,
    }


@pytest.mark.parametrize(
    'number', [0, -1, 1e-4, 1e7, float('nan'), float('inf'), 'x', True, None]
)
def test_an_invalid_spending_rate_is_named(number):
    with pytest.raises(exception.BadArgument, match='of b: expected a number'):
        spending_rates.parse_rates({'a': 1, 'b': number})


@pytest.mark.parametrize('content', [[], 'x', 7, None])
def test_a_file_that_is_no_object_is_refused(content):
    with pytest.raises(exception.BadArgument, match='expected an object'):
        spending_rates.parse_rates(content)


def watched(path):
    return json_file.watch_json(
        spending_rates.OPTION, str(path), spending_rates.parse_rates, {}
    )


def test_a_changed_rates_file_counts_unless_invalid(tmp_path, caplog):
    path = tmp_path / 'rates.json'
    file = watched(path)
    assert file.content() == {}
    path.write_text('{"a": 3}')
    assert file.content() == {'a': 3.0}
    assert file.content() is file.content()
    path.write_text('{"a": 0, "b": 1}')
    assert file.content() == {'a': 3.0}
    assert '[fairness] rates' in caplog.text
    assert 'rate 0 of a: expected a number from 0.001' in caplog.text
    caplog.clear()
    assert file.content() == {'a': 3.0}
    assert not caplog.text
    path.unlink()
    assert file.content() == {}


def test_without_a_rates_file_nothing_is_logged():
    assert watched('').content() == {}


@pytest.fixture
def host(tmp_path):
    vms = [fake_host.vm(f'vm-{n}', f'user-{n}') for n in range(1, 5)]
    made = fake_host.FakeHost(
        tmp_path, *vms, metric='SpendingRate', policy='proportional'
    )
    made.cpu.wants = {f'vm-{n}': 1.0 for n in range(1, 5)}
    return made


NAMES = ('vm-1', 'vm-2', 'vm-3', 'vm-4')


def spread(host):
    shares = host.shares(*NAMES)
    return [each / shares[0] for each in shares]


def test_cpu_shares_follow_rates_from_the_first_deciding_round(host):
    host.rates = dict(zip(NAMES, [30.0, 60.0, 90.0, 120.0], strict=True))
    host.rounds(2)
    assert spread(host) == pytest.approx([1, 2, 3, 4], rel=0.01)


def test_cpu_shares_follow_changed_rates_within_three_rounds(host):
    host.rates = {'vm-1': 20.0}
    host.rounds(4)
    assert spread(host) == pytest.approx([1, 0.05, 0.05, 0.05], rel=0.02)
    host.rates = {'vm-2': 20.0}
    host.rounds(3)
    assert spread(host) == pytest.approx([1, 20, 1, 1], rel=0.02)


def test_without_rates_vms_of_one_size_have_equal_shares(host):
    host.rounds(3)
    assert spread(host) == [1, 1, 1, 1]


def test_rates_beyond_the_ratio_are_cut_and_no_vm_starves(host):
    host.rates = {'vm-1': 1e6}
    host.rounds(6)
    assert min(spread(host)) == pytest.approx(1 / 20, rel=0.02)


def sample(**used_s):
    """What VMs had since they began, seconds of CPU by name."""
    names = sorted(used_s)
    totals = np.zeros((len(names), len(resources.RESOURCES)))
    totals[:, fake_host.CPU] = [used_s[name] for name in names]
    vms = tuple(fake_host.vm(f'{name}-1', name) for name in names)
    return sample_model.Sample(
        time_s=1.0,
        incarnations=vms,
        totals=totals,
        cpu_stall_s=np.zeros(len(names)),
        read_at_s=np.ones(len(names)),
        cpu_busy_s=np.zeros(1),
    )


class FakeService:
    """Says rates, and remembers what it was told."""

    def __init__(self):
        self.rates = {}
        self.asked = []
        self.error = None

    def __call__(self, meters, known):
        self.asked.append((dict(meters), known))
        if self.error:
            raise self.error
        version = tree_module.accounts_hash([self.rates])
        rates_ = None if version == known else self.rates
        return {'version': version, 'rates': rates_}


@pytest.fixture
def service():
    return FakeService()


@pytest.fixture
def known(tmp_path, service):
    """Makes one that asks in every moment."""
    made = []

    def make():
        made.append(
            spending_rates.ClusterRates(
                nova_facts.NoCloud(),
                service,
                state_file.StateFile(tmp_path / 'rates.json'),
                0.01,
            )
        )
        made[-1].start(lambda _: None)
        return made[-1]

    yield make
    for each in made:
        each.stop()


def test_the_service_is_told_the_use_of_vms_and_answers_rates(known, service):
    service.rates = {'a-1': 30.0}
    here = known()
    now = sample(a=1.5, b=0.25)
    assert wait_for_value(lambda: here.rates_of(now) == {'a-1': 30.0})
    meters, _ = service.asked[-1]
    assert sorted(meters.values()) == [('a-1', 1_500_000), ('b-1', 250_000)]
    service.rates = {'a-1': 60.0}
    assert wait_for_value(lambda: here.rates_of(now) == {'a-1': 60.0})


def test_the_last_rates_count_during_an_outage_and_after_a_restart(
    known, service
):
    service.rates = {'a-1': 30.0}
    first = known()
    assert wait_for_value(
        lambda: first.rates_of(sample(a=1.0)) == {'a-1': 30.0}
    )
    service.error = exception.HostNotReached('away')
    count = len(service.asked)
    again = known()
    assert again.rates_of(sample(a=1.0)) == {'a-1': 30.0}
    assert wait_for_value(lambda: len(service.asked) > count)
    assert again.rates_of(sample(a=1.0)) == {'a-1': 30.0}


@pytest.mark.parametrize(
    'answer',
    [
        None,
        {},
        {'version': 'x', 'rates': None},
        {'version': 'x', 'rates': {'a-1': 0}},
        {'version': 'x', 'rates': ['a-1']},
    ],
)
def test_an_invalid_answer_about_rates_changes_nothing(known, service, answer):
    service.rates = {'a-1': 30.0}
    here = known()
    assert wait_for_value(
        lambda: here.rates_of(sample(a=1.0)) == {'a-1': 30.0}
    )
    asked = []

    def ask(meters, version):
        asked.append(version)
        return answer

    here._ask = ask
    assert wait_for_value(lambda: here.rates_of(sample(a=1.0)) and asked)
    assert here.rates_of(sample(a=1.0)) == {'a-1': 30.0}


def test_an_unreadable_record_is_replaced_by_an_empty_one(
    tmp_path, service, caplog
):
    (tmp_path / 'rates.json').write_text('[')
    made = spending_rates.ClusterRates(
        nova_facts.NoCloud(),
        service,
        state_file.StateFile(tmp_path / 'rates.json'),
        1.0,
    )
    assert made.rates_of(sample(a=1.0)) == {}
    assert 'rates count when the cluster service says them' in caplog.text


def configured(tmp_path, **options):
    conf = types.SimpleNamespace(rates='', interval=10.0)
    vars(conf).update(options)
    return types.SimpleNamespace(fairness=conf)


def test_without_the_service_rates_come_from_a_file(tmp_path):
    path = tmp_path / 'own.json'
    path.write_text(json.dumps({'a-1': 7}))
    alone = nova_facts.NoCloud()
    found, of = spending_rates.connect(
        configured(tmp_path, rates=str(path)),
        alone,
        peering.Peering,
        tmp_path,
    )
    assert found is alone
    assert of(sample(a=1.0)) == {'a-1': 7.0}


def test_without_a_transport_the_service_gives_no_rates(tmp_path):
    with pytest.raises(exception.ConfigurationError, match='transport_url'):
        spending_rates.connect(
            configured(tmp_path, rates='cluster'),
            nova_facts.NoCloud(),
            peering.Peering(),
            tmp_path,
        )


def test_meters_of_vms_are_reported_before_rates_are_asked_for():
    asked = []

    def call(method, **given):
        asked.append((method, given))
        if method == 'report_meters':
            raise exception.HostNotReached('away')
        return {'version': 'x', 'rates': {}}

    told = spending_rates._report_and_query(call, 'h1')(
        {'a-1/7/9': ('a-1', 5)}, 'v'
    )
    assert told == {'version': 'x', 'rates': {}}
    assert asked == [
        ('report_meters', {'node': 'h1', 'meters': {'a-1': ('a-1/7/9', 5)}}),
        ('get_rates', {'servers': ['a-1'], 'known': 'v'}),
    ]
