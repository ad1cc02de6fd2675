# SPDX-License-Identifier: Apache-2.0

"""The relay between nova-api and conductor: builds wait, other messages pass.

Start with ``jobs``. The relay knows no database: its command gives it a
function that stores a message.
"""
