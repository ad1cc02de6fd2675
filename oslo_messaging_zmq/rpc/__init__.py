# SPDX-License-Identifier: Apache-2.0

"""Calls, casts and fanouts over ZeroMQ.

Start with ``caller`` and ``listener``. The package stores no messages;
``notifications`` does.
"""
