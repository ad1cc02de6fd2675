# SPDX-License-Identifier: Apache-2.0


"""The command ``nova-fairness-sim``."""

import json
import sys
import textwrap

import pytest

from fairness_lab.border_sim import reader as border_reader
from fairness_lab.cmd import sim
from fairness_lab.measures import running
from fairness_lab.node_sim import references
from fairness_lab.queue_sim import reader
from fairness_lab.queue_sim import tenant_moves
from fairness_lab.scenario import programs
from nova_fairness import plugins
from tests.fixtures import simulator_schemas


def test_the_list_command_shows_all_names(capsys):
    assert sim.main(['list']) == 0
    said = capsys.readouterr().out
    for names in (
        programs.SIMULATOR.names(),
        plugins.metric_names(),
        plugins.policy_names(),
        references.names(),
    ):
        for name in names:
            assert f'  {name}\n' in said


def test_clouds_and_orders_are_listed(capsys):
    assert sim.main(['cluster', 'list']) == 0
    said = capsys.readouterr().out
    for name in (
        *reader.names(),
        *border_reader.names(),
        *plugins.order_names(),
    ):
        assert f'  {name}\n' in said


SHORT = '--set days=0.1 --set half_life_hours=1'


def test_a_queue_run_writes_results_and_pages(tmp_path, capsys):
    words = f'cluster run churn --order fair_tree --seed 3 {SHORT}'
    assert sim.main([*words.split(), '--out', str(tmp_path / 'result')]) == 0
    assert 'fair_tree' in capsys.readouterr().out
    result = json.loads((tmp_path / 'result' / 'result.json').read_text())
    assert (result['scenario'], result['seed']) == ('churn', 3)
    assert result['duration_s'] == 8640
    assert (tmp_path / 'result' / 'report.html').is_file()
    assert (tmp_path / 'result' / 'run.png').is_file()


def test_a_metric_missing_in_a_named_environment_is_reported(tmp_path, capsys):
    # A metric that is installed elsewhere is easily taken for broken.
    words = ['run', 'one-node', '--metric', 'Elsewhere', '--out']
    assert sim.main([*words, str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "no metric 'Elsewhere'; installed: " in said
    assert said.rstrip().endswith(f'; looked in {sys.prefix}')


def test_moves_for_owners_are_printed(tmp_path, capsys, monkeypatch):
    out = tmp_path / 'tenants'
    for name, number in (
        ('PERIODS', 1),
        ('PERIOD_ROUNDS', 20),
        ('UNCOUNTED_ROUNDS', 10),
    ):
        monkeypatch.setattr(tenant_moves, name, number)
    words = ['cluster', 'tenants', '--count', '1', '--out', str(out)]
    assert sim.main(words) == 0
    content = json.loads((out / 'tenants.json').read_text())
    simulator_schemas.validate(content, 'queue_sim', 'tenants')
    assert [each['moves'] for each in content['tenants']] == [
        *tenant_moves.MOVE_CHOICES
    ]
    assert 'worst-off before %' in capsys.readouterr().out
    assert (out / 'tenants.csv').exists()


def test_the_market_command_prints_tables(tmp_path, capsys):
    out = tmp_path / 'result'
    words = ['cluster', 'market', '--seed', '2', '--out', str(out)]
    assert sim.main(words) == 0
    content = json.loads((out / 'market.json').read_text())
    assert (content['version'], content['seed']) == (1, 2)
    said = capsys.readouterr().out
    for name in ('example', 'migrations', 'changes'):
        head = (out / f'{name}.csv').read_text().splitlines()[0]
        assert list(content[name][0]) == head.split(',')
        assert all(word in said for word in head.split(','))
    simulator_schemas.validate(content, 'queue_sim', 'market')


def test_the_border_command_writes_results(tmp_path, capsys):
    out = tmp_path / 'result'
    words = (
        'cluster border week --mover demand --mover fixed --seed 2'
        ' --set hosts.count=1 --set days=0.4 --set border.cloud_hosts=1'
    )
    for side in ('cloud', 'batch'):
        words += f' --set {side}.projects={_projects(side)}'
    assert sim.main([*words.split(), '--out', str(out)]) == 0
    content = json.loads((out / 'border.json').read_text())
    assert (content['scenario'], content['seed']) == ('week', 2)
    runs = [each['name'] for each in content['runs']]
    assert runs == ['demand', 'fixed-000', 'fixed-001']
    assert content['best_fixed'] in runs
    said = capsys.readouterr().out
    assert all(name in said for name in runs)
    simulator_schemas.validate(content, 'border_sim')
    for name in ('report.html', 'border.png', 'series-demand.csv'):
        assert (out / name).is_file()
    table = (out / 'border.csv').read_text().splitlines()
    assert [line.split(',')[0] for line in table] == ['border', *runs]


def _projects(side):
    hours = {'cloud': '[[0,0.2]]', 'batch': '[[0.2,0.4]]'}[side]
    return (
        '[{"name":"a","demand":0.5,"lifetime_hours":0.1,'
        f'"active_days":{hours},"sizes":[{{"vcpus":4,"memory_gib":1}}]}}]'
    )


def test_the_attacks_command_runs_several_clouds(tmp_path, capsys):
    words = f'cluster attack --order fifo --attack users --count 2 {SHORT}'
    words = words.replace('days=0.1', 'days=0.5')
    out = tmp_path / 'result'
    assert sim.main([*words.split(), '--out', str(out)]) == 0
    content = json.loads((out / 'attacks.json').read_text())
    found = content['attacks']
    assert (content['scenario'], content['order']) == ('rivals', 'fifo')
    assert [each['seed'] for each in found] == [10, 11]
    # Whose name it is does not matter to who came first.
    assert all(abs(each['gain'] - 1) < 1e-9 for each in found)
    assert 'users' in capsys.readouterr().out
    table = (out / 'attacks.csv').read_text().splitlines()
    assert table[1].startswith('users,1.00,1.00')
    simulator_schemas.validate(content, 'queue_sim', 'attacks')


@pytest.mark.slow
def test_a_comparison_of_orders_writes_a_page(tmp_path, capsys):
    words = f'cluster compare churn steady --orders fifo,fair_tree {SHORT}'
    out = tmp_path / 'result'
    assert sim.main([*words.split(), '--out', str(out)]) == 0
    content = json.loads((out / 'compare.json').read_text())
    ran = [(run['scenario'], run['order']) for run in content['runs']]
    assert ran == [
        (cloud, order)
        for cloud in ('churn', 'steady')
        for order in ('fifo', 'fair_tree')
    ]
    for run in content['runs']:
        directory = out / run.pop('directory')
        assert json.loads((directory / 'result.json').read_text()) == run
        assert (directory / 'report.html').is_file()
    assert (out / 'report.html').is_file()
    assert (out / 'compare.png').is_file()
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in said[1:-1]] == [[*r] for r in ran]


@pytest.mark.slow
def test_a_comparison_of_victim_policies_writes_a_page(tmp_path, capsys):
    words = (
        'cluster compare spot --orders fifo --victims least,youngest'
        ' --set days=0.05 --set hosts.count=2'
    )
    out = tmp_path / 'result'
    assert sim.main([*words.split(), '--out', str(out)]) == 0
    runs = json.loads((out / 'compare.json').read_text())['runs']
    assert [run['victims'] for run in runs] == ['least', 'youngest']
    assert all(run['made_room']['servers'] >= 0 for run in runs)
    assert (out / 'runs' / 'spot' / 'fifo' / 'youngest').is_dir()
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in said[:3]] == [
        'victims',
        'least',
        'youngest',
    ]


def test_an_option_makes_all_servers_of_a_cloud_normal(tmp_path):
    words = (
        'cluster run spot --order fifo --set with_preemptible=false'
        ' --set days=0.05'
    )
    out = tmp_path / 'result'
    assert sim.main([*words.split(), '--out', str(out)]) == 0
    assert json.loads((out / 'result.json').read_text())['made_room'] is None


def test_an_interrupted_run_of_the_queue_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(running.files, 'write_json', interrupt)
    words = f'cluster run churn --order fifo {SHORT} --out {tmp_path}/result'
    assert sim.main(words.split()) == 130
    assert list(tmp_path.iterdir()) == []


def test_a_run_writes_results_and_a_page(tmp_path, capsys):
    out = tmp_path / 'result'
    words = ['run', 'one-node', '--rounds', '6', '--out', str(out)]
    assert sim.main(words) == 0
    assert 'one-node' in capsys.readouterr().out
    result = json.loads((out / 'result.json').read_text())
    assert result['rounds'] == 6
    assert (out / 'report.html').is_file()
    assert (out / 'run.png').read_bytes().startswith(b'\x89PNG')


@pytest.mark.parametrize(
    ('policy', 'count'), [('foresight', 1), ('thesis', 0), ('none', 0)]
)
def test_a_harmful_metric_and_policy_are_named(
    tmp_path, capsys, policy, count
):
    words = f'run one-node --metric GreedinessMetric --policy {policy}'
    more = f' --rounds 1 --no-report --out {tmp_path / "result"}'
    assert sim.main((words + more).split()) == 0
    said = capsys.readouterr().err
    assert said.count('sim: warning: metric GreedinessMetric') == count


def test_a_run_accepts_a_seed_and_settings(tmp_path):
    out = tmp_path / 'result'
    words = (
        'run star --rounds 3 --seed 9 --set max_weight_ratio=7 --policy LEON'
        f' --no-report --out {out}'
    )
    assert sim.main(words.split()) == 0
    result = json.loads((out / 'result.json').read_text())
    assert (result['seed'], result['policy']) == (9, 'LEON')
    assert result['agents']['max_weight_ratio'] == 7
    assert not (out / 'report.html').exists()


WRONG = {
    'a scenario': ('run nothing', 'there is no scenario nothing'),
    'a metric': ('run one-node --metric X', "no metric 'X'; installed"),
    'a policy': ('run one-node --policy X', 'there is no policy X'),
    'a share': ('run one-node --share X', 'X'),
    'a setting': ('run one-node --set x=1', 'unknown key x'),
    'a file': ('run {tmp_path}/bad.yaml', 'bad.yaml, line 1'),
    'a trace': ('run {tmp_path}/trace.yaml', 'trace.csv, line 2, column'),
    'one of many': (
        'compare one-node --policies none,X',
        'there is no policy X',
    ),
    'a cloud': (
        'cluster run nothing --order fifo',
        'there is no scenario nothing',
    ),
    'an order': ('cluster run churn --order X', "no order 'X'; installed"),
    'one of many orders': (
        'cluster compare churn --orders fifo,X',
        "no order 'X'; installed",
    ),
    'a border': ('cluster border nothing', 'there is no scenario nothing'),
    'a setting of a border': (
        'cluster border week --set border.boot=1',
        'unknown key',
    ),
    'a setting of a cloud': (
        'cluster run churn --order fifo --set x=1',
        'unknown key x',
    ),
    'a parameter': (
        'sweep one-node --policies thesis --vary policy.gain=1',
        'has no parameter gain',
    ),
}


@pytest.mark.parametrize(('words', 'expected'), WRONG.values(), ids=WRONG)
def test_an_error_is_printed_and_nothing_is_written(
    tmp_path, capsys, words, expected
):
    (tmp_path / 'bad.yaml').write_text('description: []\n')
    (tmp_path / 'trace.csv').write_text('time_s,vm,user,node\n0,a,u,m\n')
    (tmp_path / 'trace.yaml').write_text(
        textwrap.dedent(
            """\
            description: a test
            rounds: 3
            nodes: {n: {cpus: 1}}
            trace: trace.csv
            """
        )
    )
    out = tmp_path / 'out' / 'result'
    arguments = [*words.format(tmp_path=tmp_path).split(), '--out', str(out)]
    assert sim.main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith('nova-fairness-sim: ')
    assert expected in said
    assert len(said.splitlines()) == 1
    assert not out.exists()


USAGE = {
    'no command': '',
    'no directory': 'run one-node',
    'nothing of the queue': 'cluster',
    'no order': 'cluster run churn --out x',
    'rounds that are none': 'run one-node --rounds 0 --out x',
    'a setting without a value': 'run one-node --set x --out x',
    'a parameter that is no number': 'sweep --vary policy.gain=much --out x',
    'a format that is none': 'run one-node --format xml --out x',
}


@pytest.mark.parametrize('words', USAGE.values(), ids=USAGE)
def test_wrong_usage_exits_with_2(capsys, words):
    with pytest.raises(SystemExit) as caught:
        sim.main(words.split())
    assert caught.value.code == 2


def test_results_are_not_overwritten(tmp_path, capsys):
    (tmp_path / 'mine').write_text('kept')
    words = f'run one-node --rounds 3 --out {tmp_path}'
    assert sim.main(words.split()) == 1
    assert 'expected a new or empty directory' in capsys.readouterr().err
    assert (tmp_path / 'mine').read_text() == 'kept'


def test_an_interrupted_run_leaves_nothing(tmp_path, monkeypatch, capsys):
    def interrupt(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(running.files, 'write_json', interrupt)
    words = f'run one-node --rounds 3 --out {tmp_path}/result'
    assert sim.main(words.split()) == 130
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_writes_a_table(tmp_path, capsys):
    words = (
        'sweep one-node --rounds 4 --vary reports.loss=0,0.5'
        f' --policies feedback --out {tmp_path}/result'
    )
    assert sim.main(words.split()) == 0
    said = capsys.readouterr().out
    assert 'reports.loss=0.5' in said
    assert (tmp_path / 'result' / 'sweep.csv').is_file()
