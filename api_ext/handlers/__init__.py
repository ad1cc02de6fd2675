# SPDX-License-Identifier: Apache-2.0

"""Answers of the HTTP interface, one module for each kind of object.

Start with ``host``: the call that sets the metric of an agent.
It never asks Nova itself: ``location`` does.
"""
