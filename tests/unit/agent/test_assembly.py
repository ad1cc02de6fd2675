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

"""Building an agent where something is missing."""

from nova_fairness.agent import assembly
from nova_fairness.apply import cpu
from nova_fairness import exception


def test_a_kernel_without_the_control_is_measured_only(monkeypatch, caplog):
    def missing():
        raise exception.ControlUnavailable('no cpu controller is mounted')

    monkeypatch.setattr(cpu, 'CpuShares', missing)
    assert assembly.cpu_controls() == ()
    assert 'not steered: no cpu controller is mounted' in caplog.text
