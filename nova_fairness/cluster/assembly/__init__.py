# SPDX-License-Identifier: Apache-2.0

"""Builders of the service and its parts from the configuration.

Start with ``queue_service``: it builds all parts that decide about requests.
This package makes no decisions itself, and contains no command line and no
relay.
"""
