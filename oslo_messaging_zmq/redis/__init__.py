# SPDX-License-Identifier: Apache-2.0

"""Redis: URLs, Sentinel, cluster, and the keys of the driver.

Start with ``client``.
It never deletes a key that is not the driver's.
"""
