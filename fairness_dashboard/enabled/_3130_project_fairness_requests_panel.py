# SPDX-License-Identifier: Apache-2.0

"""Requests of a project."""

PANEL = 'fairness_requests'
PANEL_DASHBOARD = 'project'
PANEL_GROUP = 'fairness'
ADD_PANEL = 'fairness_dashboard.requests.RequestsPanel'
