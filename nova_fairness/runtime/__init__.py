# SPDX-License-Identifier: Apache-2.0

"""Common services of all programs: plugins under a deadline, logs, state
files.

Start with ``guard`` or ``state_file``. The package contains nothing about
fairness.
"""
