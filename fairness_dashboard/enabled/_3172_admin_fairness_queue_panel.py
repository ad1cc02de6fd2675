# SPDX-License-Identifier: Apache-2.0

"""Requests of all projects."""

PANEL = 'fairness_queue'
PANEL_DASHBOARD = 'admin'
PANEL_GROUP = 'fairness'
ADD_PANEL = 'fairness_dashboard.queue.QueuePanel'
