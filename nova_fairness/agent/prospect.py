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

"""What an agent foresees, for policies that look ahead."""

import numpy as np

from nova_fairness.decide import policy as policy_base
from nova_fairness.model import outlook
from nova_fairness.model import round as round_model
from nova_fairness.model import usage as usage_model


class Prospects:
    """Gives what is foreseen; the same while next to nothing changes."""

    def __init__(self) -> None:
        self._last: outlook.Outlook | None = None

    def of_node(
        self,
        measured: round_model.Measured,
        policy: policy_base.Policy,
        ratios: usage_model.Scalars,
    ) -> outlook.Prospect | None:
        """Give what is foreseen for the VMs of this node.

        :param ratios: (c,) largest by smallest weight.
        :returns: ``None`` for policies that do not look ahead.
        """
        if not policy.looks_ahead or measured.foresee is None:
            return None
        found = measured.foresee()
        if self._last is None or not self._last.is_like(found.outlook):
            self._last = found.outlook
        used = measured.usage.newest
        here = np.zeros(1, dtype=np.intp)
        return outlook.Prospect(
            used=used,
            wanted=used if measured.wanted is None else measured.wanted,
            user=found.user,
            ratio=ratios,
            views=(outlook.View(here, here + found.place, self._last),),
        )
