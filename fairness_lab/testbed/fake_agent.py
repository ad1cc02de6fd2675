# SPDX-License-Identifier: Apache-2.0

"""The agent of a simulated node: measure and decide, without a host.

The rooms are the agent's own; what is simulated is the host around them.
"""

from collections.abc import Mapping
import configparser
import dataclasses
import pathlib
import tempfile
import types

import numpy as np
from oslo_config import cfg

from fairness_lab.testbed import fake_mesh
from fairness_lab.testbed import fake_node
from nova_fairness import plugins
from nova_fairness.conf import fairness as fairness_conf
from nova_fairness.conf import opts
from nova_fairness.decide import changes
from nova_fairness.decide import contention
from nova_fairness.decide import policy as policy_base
from nova_fairness.decide import round as decide_round
from nova_fairness.decide.controls import cpu
from nova_fairness.measure import endowment
from nova_fairness.measure import metric as metric_base
from nova_fairness.measure import ownership
from nova_fairness.measure import stages
from nova_fairness.measure import totals
from nova_fairness.measure import usage as usage_measure
from nova_fairness.measure import wants
from nova_fairness.model import allocation
from nova_fairness.model import report
from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from nova_fairness.model import sample as sample_model
from nova_fairness.model import usage as usage_model
from nova_fairness.observe import record
from nova_fairness.shares import waiting

_UNITS = cpu.RANGES[cpu.CgroupVersion.V1]
_KNOB = resources.Control.CPU
_COLUMN = resources.CONTROLS.index(_KNOB)

Settings = Mapping[str, Mapping[str, str]]


class FakeAgent:
    """One agent; its memory ends with it.

    :param node: on which it works.
    :param settings: value by option by section.
    :param mesh: through which it hears the others.
    :param rounds: file of its record.
    """

    def __init__(
        self,
        node: fake_node.FakeNode,
        settings: Settings,
        mesh: fake_mesh.FakeMesh,
        rounds: pathlib.Path,
    ) -> None:
        self._node = node
        self._options = _options(settings).fairness
        self._metric = plugins.load_metric(self._options.metric)
        self._policy = plugins.load_policy(self._options.policy)
        self._mesh = mesh
        self._before: sample_model.Sample | None = None
        self._past: usage_model.Usage | None = None
        self._memory: policy_base.Memory = types.MappingProxyType({})
        self._weights: dict[str, allocation.Weights] = {}
        self._rows: dict[str, int] = {}
        self._noise = waiting.Past.unknown(0)
        self._number = 0
        rounds.parent.mkdir(parents=True, exist_ok=True)
        self._recorder = record.Recorder(rounds)
        self.next_s = node.now_s
        mesh.join(node.spec.name)

    def round(self) -> None:
        """Run a round and say when the next one is due."""
        self._number += 1
        taken = self._node.sample()
        before, self._before = self._before, taken
        measured = decided = None
        changed = 0
        if before is not None and taken.time_s > before.time_s:
            self._past = usage_measure.between(
                before,
                taken,
                self._node.resources.speed_factor,
                self._past,
                self._options.decay_factor,
            )
            if len(taken):
                measured = self._measure(self._past)
                decided = self._decide(measured)
                changed = self._apply(decided)
        self._recorder.add(self._told(taken, measured, decided, changed))
        self.next_s += self._options.interval

    def stop(self) -> None:
        """Every VM what it was found with."""
        for vm in self._node.vms.values():
            vcpus = vm.incarnation.instance.vcpus
            vm.shares = fake_node.SHARES_OF_VCPU * vcpus
        self.kill()

    def kill(self) -> None:
        """End as a crash would."""
        self._mesh.leave(self._node.spec.name)
        self._recorder.close()

    def _measure(self, used: usage_model.Usage) -> round_model.Measured:
        owners = ownership.of_node(used.incarnations, self._options.entity)
        supply = self._node.resources.supply(used.interval_s)
        vms = [item.instance for item in used.incarnations]
        name = self._options.metric
        host = self._node.spec.name
        view = self._mesh.view(host, self._node.now_s)
        peers = {k: v for k, v in view.reports.items() if k != host}
        others = report.View(peers, view.age_s, view.left_out)
        known = {*owners.users, *totals.known_users(others, name)}
        demands = metric_base.Demands(
            usage=used.amounts,
            endowment=endowment.endowments(
                np.array([vm.vcpus for vm in vms], dtype=np.float64),
                np.array([vm.memory_bytes for vm in vms], dtype=np.float64),
                owners.node_index,
                supply[np.newaxis, :],
            ),
            supply=supply + totals.supply_of(others, used.interval_s, name),
            node=owners.node_index,
            user_count=len(known),
        )
        own = stages.instance_stage(self._metric, demands)
        self._publish(used, owners, own, demands)
        return self._treated(used, owners, own, demands)

    def _publish(
        self,
        used: usage_model.Usage,
        owners: usage_model.Ownership,
        own: usage_model.Scalars,
        demands: metric_base.Demands,
    ) -> None:
        told = report.NodeReport(
            host=self._node.spec.name,
            boot_id='fake',
            sequence=self._number,
            interval_s=used.interval_s,
            metric=self._options.metric,
            resources=self._node.resources,
            users=totals.by_user(
                owners, own, demands.endowment, demands.usage
            ),
        )
        self._mesh.publish(told, self._node.now_s)

    def _treated(
        self,
        used: usage_model.Usage,
        owners: usage_model.Ownership,
        own: usage_model.Scalars,
        demands: metric_base.Demands,
    ) -> round_model.Measured:
        view = self._mesh.view(self._node.spec.name, self._node.now_s)
        combined = totals.combined(
            view,
            used.interval_s,
            self._options.metric,
            self._options.quota_weights,
        )
        owners = ownership.extended(owners, combined.users)
        of_users = stages.user_stage(self._metric, combined.totals)
        return round_model.Measured(
            usage=used,
            ownership=owners,
            endowment=demands.endowment,
            instance_heaviness=own,
            heaviness=stages.combine_stage(
                self._metric, of_users[owners.user_index], own
            ),
            user_heaviness=of_users,
            quota=combined.totals.quota,
            supply=combined.supply,
            view=view,
        )

    def _decide(self, measured: round_model.Measured) -> round_model.Decided:
        vms = measured.usage.incarnations
        situation = contention.situation(
            measured.usage,
            measured.heaviness,
            measured.ownership.user_index,
            self._node.resources,
            self._waiting(measured.usage),
        )
        neutral = np.ones(len(resources.CONTROLS))
        previous = np.array([self._weights.get(vm.key, neutral) for vm in vms])
        weights, self._memory = self._policy(
            situation, previous, self._memory, self._options.interval
        )
        if self._policy.preset is policy_base.Preset.DEFAULT:
            weights = decide_round.bounded(
                weights,
                previous,
                self._of_all('max_weight_ratio'),
                self._of_all('largest_step'),
            )
        self._weights = {vm.key: weights[row] for row, vm in enumerate(vms)}
        return round_model.Decided(
            contended=situation.contended,
            wanting=situation.wanting,
            weights=weights,
            wanted={
                allocation.Knob(vm.key, _KNOB): cpu.to_units(
                    weights[row, _COLUMN],
                    vm.instance,
                    self._policy.preset,
                    _UNITS,
                )
                for row, vm in enumerate(vms)
            },
        )

    def _waiting(self, used: usage_model.Usage) -> usage_model.Waiting:
        keys = [item.key for item in used.incarnations]
        rows = np.array([self._rows.get(key, -1) for key in keys], np.intp)
        found, self._noise = waiting.judge(
            wants.interval(used, self._node.resources),
            self._noise.picked(rows),
        )
        self._rows = {key: row for row, key in enumerate(keys)}
        return found

    def _of_all(self, option: str) -> float:
        """Number that an option has for every control."""
        said = self._options[option]
        return fairness_conf.by_control(option, said)[None]

    def _apply(self, decided: round_model.Decided) -> int:
        by_key = {vm.incarnation.key: vm for vm in self._node.vms.values()}
        wanted = changes.changes(
            decided.wanted, self._present(), self._of_all('weight_tolerance')
        )
        for change in wanted:
            by_key[change.knob.incarnation].shares = change.after
        return len(wanted)

    def _present(self) -> allocation.Allocation:
        return {
            allocation.Knob(vm.incarnation.key, _KNOB): vm.shares
            for vm in self._node.vms.values()
        }

    def _told(
        self,
        taken: sample_model.Sample,
        measured: round_model.Measured | None,
        decided: round_model.Decided | None,
        changed: int,
    ) -> round_model.Round:
        return round_model.Round(
            number=self._number,
            started_s=taken.time_s,
            wall_s=taken.time_s,
            duration_s=0.0,
            metric=self._options.metric,
            policy=self._options.policy,
            enforced=True,
            node=self._node.resources,
            sample=taken,
            measured=measured,
            decided=decided,
            applied=self._present(),
            tally=dataclasses.replace(round_model.Tally(), changed=changed),
            quarantined={},
            errors=(),
        )


def _options(settings: Settings) -> cfg.ConfigOpts:
    """Agent's options with what the laboratory sets, read from a file."""
    parser = configparser.RawConfigParser()
    parser.read_dict(settings)
    conf = cfg.ConfigOpts()
    opts.register_opts(conf)
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as file:
        parser.write(file)
        file.flush()
        conf([], project='nova-fairness-lab', default_config_files=[file.name])
    return conf
