# SPDX-License-Identifier: Apache-2.0

"""The laboratory: testbed, simulators and figures for claims of fairness.

Start with ``scenario``: the description that testbed and simulators read.
It never runs on an operator's cloud; the product imports nothing of it.
:func:`load` reads results for notebooks.
"""

from fairness_lab.measures import frames

load = frames.load
