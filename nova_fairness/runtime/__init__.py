# SPDX-License-Identifier: Apache-2.0

"""Means of all programs: plugins under a deadline, logs, state files.

Start with ``guard`` or ``state_file``.
It never knows what fairness is.
"""
