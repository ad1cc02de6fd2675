# SPDX-License-Identifier: Apache-2.0

"""Messages of the agent: to peers and the cluster service, and to guests.

Start with ``peering``; ``guest_notices`` reaches guests.
It never lets a round wait for an answer.
"""
