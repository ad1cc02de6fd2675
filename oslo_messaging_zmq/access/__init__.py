# SPDX-License-Identifier: Apache-2.0

"""Admission of peers: CURVE keys, sessions and refusals.

Start with ``authenticator``. The package ``keys`` decides which keys are
valid, not this one.
"""
