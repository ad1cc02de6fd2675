# SPDX-License-Identifier: Apache-2.0

"""Group of panels of operators."""

from django.utils.translation import gettext_lazy as _

PANEL_GROUP = 'fairness'
PANEL_GROUP_NAME = _('Fair Sharing')
PANEL_GROUP_DASHBOARD = 'admin'
