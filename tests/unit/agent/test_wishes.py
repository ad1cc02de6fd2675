# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What VMs want for longer than a moment."""

import numpy as np
import pytest

from nova_fairness.agent import wishes
from nova_fairness.model import node
from nova_fairness.model import usage as usage_model
from tests.unit.measure import build

R = build.RESOURCES
CPU = R.index('cpu_time')


@pytest.fixture
def made():
    return wishes.Wishes(
        node.NodeResources(
            host='n1',
            cpus=(0, 1),
            speed_factor=1.0,
            capacity=R.vector(cpu_time=2.0),
        )
    )


def interval(*vms, seconds=10.0, known=True):
    """vms: (name, CPUs used, part of the interval that it waited)."""
    return usage_model.Usage(
        interval_s=seconds,
        incarnations=tuple(build.vm(name) for name, _, _ in vms),
        amounts=np.array(
            [R.vector(cpu_time=used * seconds) for _, used, _ in vms]
        ),
        known=np.full(len(vms), known),
        cpu_stall=np.array([stall for _, _, stall in vms]),
    )


def cpus(found, seconds=10.0):
    return (found[:, CPU] / seconds).tolist()


def test_a_moment_of_waiting_is_no_wish(made):
    assert cpus(made.lasting(interval(('a', 0.4, 0.0)))) == [0.4]
    assert cpus(made.lasting(interval(('a', 0.4, 0.5)))) == [0.4]
    assert cpus(made.lasting(interval(('a', 0.4, 0.0)))) == [0.4]


def test_who_waits_for_two_intervals_wants_more_however_long_they_are(made):
    made.lasting(interval(('a', 0.4, 0.5), seconds=10.0))
    found = made.lasting(interval(('a', 0.4, 0.5), seconds=5.0))
    assert cpus(found, 5.0) == pytest.approx([0.8])


def test_who_was_not_there_before_is_believed(made):
    assert cpus(made.lasting(interval(('a', 0.4, 0.5)))) == [0.8]
    # Of the interval in which it came nothing is known.
    made.lasting(interval(('a', 0.0, 0.0), ('b', 0.0, 0.0), known=False))
    found = made.lasting(interval(('b', 0.4, 0.5), ('a', 0.4, 0.5)))
    assert cpus(found) == pytest.approx([0.8, 0.8])
