# SPDX-License-Identifier: Apache-2.0

"""QEMU guests that make a load and count their work.

Start with ``fleet``: all guests of a run.
It never decides when they start: the scenario does.
"""
