# SPDX-License-Identifier: Apache-2.0

"""The consolidation planner as a strategy of OpenStack Watcher.

Start with ``strategy``.
It never moves a server: Watcher does.
"""
