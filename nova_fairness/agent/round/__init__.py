# SPDX-License-Identifier: Apache-2.0

"""One round: collect, measure, exchange, decide, apply.

Start with ``cycle``, which calls the other modules in this sequence. A round
never waits for an answer of the cloud or of a guest.
"""
