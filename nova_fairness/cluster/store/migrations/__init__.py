# SPDX-License-Identifier: Apache-2.0

"""Steps of the schema of the database, and how one is repeated after a kill.

Start with ``changes``: statements that can run again.
It never runs by itself: operators upgrade with ``nova-fairness-cluster``.
"""
