# SPDX-License-Identifier: Apache-2.0

"""Shares of all accounts."""

PANEL = 'fairness_tree'
PANEL_DASHBOARD = 'admin'
PANEL_GROUP = 'fairness'
ADD_PANEL = 'fairness_dashboard.tree.TreePanel'
