# SPDX-License-Identifier: Apache-2.0
"""The metric and the policy that are used where nobody chose others.

Agents, laboratory and simulator read them here; the evidence is on the
contributors' page on policies.
"""

METRIC = 'DominantShareMetric'

POLICY = 'foresight'
