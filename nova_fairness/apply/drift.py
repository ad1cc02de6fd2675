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

"""What other hands changed."""

from nova_fairness.model import allocation


def drift(
    expected: allocation.Allocation, present: allocation.Allocation
) -> allocation.Allocation:
    """Find what other hands changed since we wrote it.

    :param expected: what was written last, kernel units by knob.
    :param present: what is there now; knobs that it lacks vanished.
    :returns: the present value of each knob that differs.
    """
    return {
        knob: present[knob]
        for knob, value in expected.items()
        if present.get(knob, value) != value
    }
