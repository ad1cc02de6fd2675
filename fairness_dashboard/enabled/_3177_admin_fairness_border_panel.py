# SPDX-License-Identifier: Apache-2.0

"""Hosts between batch and cloud."""

PANEL = 'fairness_border'
PANEL_DASHBOARD = 'admin'
PANEL_GROUP = 'fairness'
ADD_PANEL = 'fairness_dashboard.border.BorderPanel'
