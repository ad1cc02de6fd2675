# SPDX-License-Identifier: Apache-2.0

"""Scenarios: nodes, users, VMs and loads over time, from files or generators.

Start with ``reader``: from YAML to an experiment.
It never runs one.
"""
