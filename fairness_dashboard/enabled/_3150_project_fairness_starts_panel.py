# SPDX-License-Identifier: Apache-2.0

"""Flavors that start now."""

PANEL = 'fairness_starts'
PANEL_DASHBOARD = 'project'
PANEL_GROUP = 'fairness'
ADD_PANEL = 'fairness_dashboard.starts.StartsPanel'
