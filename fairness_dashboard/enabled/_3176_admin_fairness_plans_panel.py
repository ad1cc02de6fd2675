# SPDX-License-Identifier: Apache-2.0

"""Migration plans."""

PANEL = 'fairness_plans'
PANEL_DASHBOARD = 'admin'
PANEL_GROUP = 'fairness'
ADD_PANEL = 'fairness_dashboard.plans.PlansPanel'
