# SPDX-License-Identifier: Apache-2.0

"""Redis: URLs, Sentinel, cluster, and the keys of the driver.

Start with ``client``. The package never deletes a key outside the driver's
prefix.
"""
