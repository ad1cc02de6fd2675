# SPDX-License-Identifier: Apache-2.0

"""Admission of peers: CURVE keys, sessions and refusals.

Start with ``authenticator``.
It never decides whose keys are good: ``keys`` does.
"""
