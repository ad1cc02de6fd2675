# SPDX-License-Identifier: Apache-2.0

"""Traffic control: HTB classes of VMs at taps and uplinks.

Start with ``control``, then ``plan``. The package changes only taps of VMs and
configured uplinks.
"""
