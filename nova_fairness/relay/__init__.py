# SPDX-License-Identifier: Apache-2.0

"""The relay between nova-api and conductor: it holds builds and forwards all
other messages.

Start with ``jobs``. The package does not access the database; its command
passes a function that stores a message.
"""
