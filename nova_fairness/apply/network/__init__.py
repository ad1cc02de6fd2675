# SPDX-License-Identifier: Apache-2.0

"""Traffic control: HTB classes of VMs at taps and uplinks.

Start with ``control``, then ``plan``.
It never touches a device that is no tap of a VM or a configured uplink.
"""
