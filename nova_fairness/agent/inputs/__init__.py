# SPDX-License-Identifier: Apache-2.0

"""Inputs of a round: settings, preferences, shares, rates and Nova's facts.

Start with ``active_settings``: the settings in force, and who set them. This
package never writes to the kernel.
"""
