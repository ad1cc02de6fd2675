# SPDX-License-Identifier: Apache-2.0

"""State of the service."""

PANEL = 'fairness_board'
PANEL_DASHBOARD = 'admin'
PANEL_GROUP = 'fairness'
ADD_PANEL = 'fairness_dashboard.board.BoardPanel'
