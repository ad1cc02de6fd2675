# SPDX-License-Identifier: Apache-2.0

"""One round: collect, measure, exchange, decide, apply.

Start with ``cycle``: it calls the others in order.
It never waits for an answer of the cloud or of a guest.
"""
