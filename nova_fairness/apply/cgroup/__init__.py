# SPDX-License-Identifier: Apache-2.0

"""Control groups: CPU, memory, disks, pins and throttles.

Start with ``files``: the files that may be written.
It never writes a file that ``files`` does not name.
"""
