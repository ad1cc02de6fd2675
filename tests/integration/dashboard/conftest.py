# SPDX-License-Identifier: Apache-2.0

"""Django for tests that start no Horizon."""

import os

from django.conf import settings

os.environ['DJANGO_SETTINGS_MODULE'] = 'horizon.test.settings'
# Translations would need applications that are loaded.
settings.USE_I18N = False
