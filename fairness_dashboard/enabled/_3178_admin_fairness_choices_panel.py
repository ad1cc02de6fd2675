# SPDX-License-Identifier: Apache-2.0

"""Metric and policy."""

PANEL = 'fairness_choices'
PANEL_DASHBOARD = 'admin'
PANEL_GROUP = 'fairness'
ADD_PANEL = 'fairness_dashboard.choices.ChoicesPanel'
