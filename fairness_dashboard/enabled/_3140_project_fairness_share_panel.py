# SPDX-License-Identifier: Apache-2.0

"""Share of a project."""

PANEL = 'fairness_share'
PANEL_DASHBOARD = 'project'
PANEL_GROUP = 'fairness'
ADD_PANEL = 'fairness_dashboard.share.SharePanel'
