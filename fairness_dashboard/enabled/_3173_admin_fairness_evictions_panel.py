# SPDX-License-Identifier: Apache-2.0

"""Servers that leave, and those that made room."""

PANEL = 'fairness_evictions'
PANEL_DASHBOARD = 'admin'
PANEL_GROUP = 'fairness'
ADD_PANEL = 'fairness_dashboard.evictions.EvictionsPanel'
