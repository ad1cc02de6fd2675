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

"""Bounds that are rounded off, so that what moves at them moves smoothly."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def smaller(one: Floats, other: Floats, blur: float) -> tuple[Floats, Floats]:
    """The smaller of two, rounded off, and how it follows the first."""
    apart = (one - other) / blur
    part = np.exp(-np.abs(apart))
    least = np.minimum(one, other) - blur * np.log1p(part)
    return least, np.where(apart > 0, part, 1.0) / (1 + part)
