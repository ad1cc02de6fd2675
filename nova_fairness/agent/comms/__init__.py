# SPDX-License-Identifier: Apache-2.0

"""Communication of the agent with peers, the cluster service and guests.

Start with ``peering``; ``guest_notices`` sends notices to guests. A round
never waits for an answer.
"""
