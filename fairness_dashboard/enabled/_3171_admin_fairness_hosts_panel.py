# SPDX-License-Identifier: Apache-2.0

"""Hosts and their users."""

PANEL = 'fairness_hosts'
PANEL_DASHBOARD = 'admin'
PANEL_GROUP = 'fairness'
ADD_PANEL = 'fairness_dashboard.hosts.HostsPanel'
