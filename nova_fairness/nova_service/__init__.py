# SPDX-License-Identifier: Apache-2.0

"""The agent as a service of Nova.

Start with ``service``. The package never changes an instance.
"""
