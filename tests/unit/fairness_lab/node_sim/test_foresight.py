# SPDX-License-Identifier: Apache-2.0

"""Foresight on simulated clouds: bars that feedback misses."""

import dataclasses

import numpy as np
import pytest

from fairness_lab.measures import measures
from fairness_lab.measures import running
from fairness_lab.node_sim import engine
from fairness_lab.node_sim import knowledge
from fairness_lab.scenario import cloud as cloud_module
from fairness_lab.scenario import generate
from fairness_lab.scenario import recipes
from nova_fairness.decide import foresight as decide_foresight
from nova_fairness.decide.policies import foresight
from nova_fairness.model import resources
from nova_fairness.shares import maxmin
from tests.unit.fairness_lab.node_sim import build

CPU = resources.RESOURCES.index('cpu_time')


def grown(graph, nodes, seed):
    recipe = recipes.CloudRecipe(
        graph=graph,
        nodes=nodes,
        users=nodes,
        degree=min(3, nodes),
        vms_per_node=4,
        node_cpus=(1.0, 2.0, 4.0),
        node_speeds=(1.0, 0.5),
        vcpus=(4.0,),
        seed=seed,
    )
    return generate.generate(recipe, 'grown', 'grown', 10.0, 30)


def setup(policy=None, **more):
    made = build.setup(**more)
    plugin = policy or foresight.ForesightPolicy()
    return dataclasses.replace(made, policy_plugin=plugin)


def judged(cloud, made):
    judge = measures.Measures(cloud, made, 'cpu_time')
    running.observe(cloud, made, [judge])
    return judge.result()


@pytest.mark.parametrize('graph', recipes.Graph)
@pytest.mark.parametrize('seed', range(1, 4))
def test_few_rounds_and_little_overshoot_on_every_graph(graph, seed):
    found = judged(grown(graph, 5, seed), setup())
    assert found['rounds_to_within_5_percent'] <= 5
    assert found['overshoot'] <= 0.1
    assert found['bounded']['worst']['settled'] <= 0.02
    assert found['idle_while_wanted']['largest'] <= 1e-9


def test_rounds_do_not_grow_with_the_way():
    found = judged(grown(recipes.Graph.CHAIN, 30, 1), setup())
    assert found['rounds_to_within_5_percent'] <= 5


@pytest.mark.parametrize('metric', ['GreedinessMetric', 'AssetFairnessMetric'])
def test_other_metrics_end_where_feedback_ends(metric):
    cloud = grown(recipes.Graph.STAR, 4, 2)
    mine, other = (
        judged(cloud, made)['bounded']['worst']['settled']
        for made in (setup(metric=metric), build.setup(metric=metric))
    )
    assert mine == pytest.approx(other, abs=0.03)


def test_nodes_that_know_different_reports_have_views_of_their_own():
    cloud = build.cloud(build.TWO_NODES, nodes=('n0', 'n1'), rounds=6)
    loss = np.zeros((2, 2))
    loss[0, 1] = 1.0
    deaf = cloud_module.Links(np.zeros((2, 2), dtype=np.int64), loss)
    seen = []

    class Watching(foresight.ForesightPolicy):
        def decide(self, crowd, previous, memory, elapsed_s):
            seen.append(crowd.foresight)
            return super().decide(crowd, previous, memory, elapsed_s)

    made = setup(Watching(), links=deaf)
    assert list(engine.simulate(cloud, made))
    first, second = seen[-1].views
    views = {int(view.place[0]): view for view in (first, second)}
    assert set(views[0].knowledge.node) == {0}
    assert set(views[1].knowledge.node) == {0, 1}
    assert views[0].deciding.tolist() == [0]


def test_foresight_of_an_unchanged_cloud_is_computed_once():
    cloud = build.cloud(build.TWO_NODES, nodes=('n0', 'n1'), rounds=8)
    seen = []

    class Watching(foresight.ForesightPolicy):
        def decide(self, crowd, previous, memory, elapsed_s):
            seen.extend(view.knowledge for view in crowd.foresight.views)
            return super().decide(crowd, previous, memory, elapsed_s)

    assert list(engine.simulate(cloud, setup(Watching())))
    assert len(seen) == 8
    assert len(set(map(id, seen[3:]))) == 1


def test_a_vm_wants_its_demand_up_to_its_vcpus():
    cloud = build.cloud(build.TWO_NODES, nodes=('n0', 'n1'), rounds=4)
    seen = []

    class Watching(foresight.ForesightPolicy):
        def decide(self, crowd, previous, memory, elapsed_s):
            seen.append((crowd.user, crowd.foresight.wanted[:, CPU]))
            return super().decide(crowd, previous, memory, elapsed_s)

    assert list(engine.simulate(cloud, setup(Watching())))
    _, wanted = seen[-1]
    assert wanted / wanted.max() == pytest.approx([1.0, 0.4, 0.4, 1.0])


def test_lost_reports_hardly_change_the_result():
    """What is wanted on a node counts for longer than what is used there."""
    cloud = grown(recipes.Graph.CHAIN, 5, 1)
    prompt, lost = (
        judged(cloud, setup(links=links))
        for links in (
            None,
            cloud_module.Links(
                np.zeros((5, 5), dtype=np.int64), np.full((5, 5), 0.3)
            ),
        )
    )
    assert lost['rounds_to_within_5_percent'] <= (
        prompt['rounds_to_within_5_percent'] + 5
    )
    assert lost['bounded']['worst']['settled'] <= 0.02


def sharpness(cloud, made):
    """Of what each node decides by, (rounds, nodes); NaN: by feedback."""
    seen = []

    class Watching(foresight.ForesightPolicy):
        def decide(self, crowd, previous, memory, elapsed_s):
            row = np.full(len(cloud.nodes), np.nan)
            for view in crowd.foresight.views:
                row[view.place] = view.end.sharpness
            seen.append(row)
            return super().decide(crowd, previous, memory, elapsed_s)

    assert list(
        engine.simulate(
            cloud, dataclasses.replace(made, policy_plugin=Watching())
        )
    )
    return np.array(seen)


def test_rounds_that_an_agent_needs_for_its_search_pass(monkeypatch):
    """A step takes 1.5 ms at least; here as long as in a large cloud."""
    cloud = grown(recipes.Graph.CHAIN, 5, 1)
    at_once = sharpness(cloud, setup())
    monkeypatch.setattr(knowledge, 'STEP_S', 0.05)
    in_portions = sharpness(cloud, setup())
    assert at_once[0, 0] == maxmin.SHARPEST
    assert in_portions[0, 0] > decide_foresight.SHARP
    assert in_portions[-1, 0] == maxmin.SHARPEST


def test_feedback_decides_where_a_step_takes_too_long(monkeypatch):
    monkeypatch.setattr(knowledge, 'STEP_S', 2 * knowledge.LONGEST_STEP_S)
    cloud = build.cloud(build.TWO_NODES, nodes=('n0', 'n1'), rounds=4)
    assert np.isnan(sharpness(cloud, setup())).all()


def test_a_restarted_node_continues_with_its_earlier_weights(monkeypatch):
    monkeypatch.setattr(knowledge, 'STEP_S', 0.05)
    cloud = build.cloud(build.TWO_NODES, nodes=('n0', 'n1'), rounds=12)
    silent = np.zeros((12, 2), dtype=np.bool_)
    silent[2:6, 1] = True
    found = sharpness(dataclasses.replace(cloud, silent=silent), setup())
    assert np.isnan(found[2:6, 1]).all()
    assert found[6, 0] != found[6, 1]
    assert (found[-1] == maxmin.SHARPEST).all()
