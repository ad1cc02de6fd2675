# SPDX-License-Identifier: Apache-2.0

"""Numbers that the manual tells, and the commands that make them again.

Start with ``reproduction``; ``claims.yaml`` declares the numbers.
It never simulates by itself: it runs the commands that the manual names.
"""
