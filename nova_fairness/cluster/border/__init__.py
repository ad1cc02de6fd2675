# SPDX-License-Identifier: Apache-2.0

"""Hosts that move between the batch system and the cloud.

Start with ``controller``: both sides are read, then hosts are moved. This
package speaks to a batch system only through the plugins of ``batch``.
"""
