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

"""How much of their vCPUs VMs want: what a kernel weighs, by what is wanted.

A kernel gives VMs by their vCPUs, whatever they want of them. So ten vCPUs
that want a tenth each and one that wants all of it are not the same, although
they want as much.
"""

import numpy as np
import numpy.typing as npt

from nova_fairness.model import node as node_model
from nova_fairness.model import report
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model


def graded(
    part: usage_model.Scalars, vcpus: npt.NDArray[np.float64]
) -> resources.Vector:
    """Divide vCPUs among the two grades between which they are.

    What they want together stays the same; see :data:`.report.GRADES`.

    :param part: (n,) 0..1, of each vCPU that a VM wants.
    :param vcpus: (n,) >= 1.
    :returns: (n, g); vCPUs below the last grade count in part.
    """
    steps = np.append(report.GRADES, 0.0)
    place = np.searchsorted(-report.GRADES, -part, 'left').clip(1) - 1
    high, low = steps[place], steps[place + 1]
    upper = np.clip((part - low) / (high - low), 0.0, 1.0)
    rows = np.arange(len(part))
    result = np.zeros((len(part), len(steps)))
    result[rows, place] = upper * vcpus
    result[rows, place + 1] = (1.0 - upper) * vcpus
    return result[:, :-1]


def of_node(
    usage: usage_model.Usage,
    wanted: resources.Vector,
    node: node_model.NodeResources,
) -> resources.Vector:
    """Grade the vCPUs of a node's VMs.

    :param wanted: (n, r) amounts of the interval.
    :returns: (n, g).
    """
    vcpus = np.array(
        [item.instance.vcpus for item in usage.incarnations], dtype=np.float64
    )
    cpu = resources.RESOURCES.index('cpu_time')
    one_cpu = node.speed_factor * usage.interval_s
    return graded((wanted[:, cpu] / (one_cpu * vcpus)).clip(0.0, 1.0), vcpus)
