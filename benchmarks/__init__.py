# SPDX-License-Identifier: Apache-2.0

"""Benchmarks, in folders by what they measure.

Each runs as a module, from the top of the checkout::

    python -m benchmarks.queue.relay --help

``pages`` writes what was recorded into the manual.
"""
