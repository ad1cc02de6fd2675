# SPDX-License-Identifier: Apache-2.0

"""Flavors that start now, also in the dialog that launches servers."""

PANEL = 'fairness_starts'
PANEL_DASHBOARD = 'project'
PANEL_GROUP = 'fairness'
ADD_PANEL = 'fairness_dashboard.starts.StartsPanel'
ADD_ANGULAR_MODULES = ['fairness.launch']
ADD_JS_FILES = ['fairness/launch.js']
ADD_SCSS_FILES = ['fairness/launch.scss']
