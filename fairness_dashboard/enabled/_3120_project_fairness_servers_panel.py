# SPDX-License-Identifier: Apache-2.0

"""Servers of a project."""

PANEL = 'fairness_servers'
PANEL_DASHBOARD = 'project'
PANEL_GROUP = 'fairness'
ADD_PANEL = 'fairness_dashboard.servers.ServersPanel'
