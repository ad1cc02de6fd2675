# SPDX-License-Identifier: Apache-2.0

"""The driver ``zmq+redis`` of oslo.messaging.

Start with ``driver``, then ``engine``. The package never imports
nova_fairness.
"""
