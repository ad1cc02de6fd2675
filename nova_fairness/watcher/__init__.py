# SPDX-License-Identifier: Apache-2.0

"""The consolidation planner as a strategy of OpenStack Watcher.

Start with ``strategy``. This package never moves a server; Watcher does.
"""
