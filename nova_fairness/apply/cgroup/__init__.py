# SPDX-License-Identifier: Apache-2.0

"""Control groups: CPU, memory, disks, pins and throttles.

Start with ``files``, which lists the files that may be written. The package
never writes any other file.
"""
