# SPDX-License-Identifier: Apache-2.0

"""Pages of Horizon about shares, waits and the use of hosts.

A plugin of Horizon: its settings files are in ``enabled``. Everything that it
shows it reads through ``conn.fairness`` with the token of the user.
"""
