# SPDX-License-Identifier: Apache-2.0

"""Computes use, endowments and heaviness from readings; pure arithmetic.

Start with ``round``, then ``metric``, which is the interface of metrics. The
package never reads a clock, a file, the network or the configuration.
"""
