# SPDX-License-Identifier: Apache-2.0

"""The service and its parts, built from the configuration.

Start with ``queue_service``: it builds all parts that decide about requests.
It never decides itself, and knows no command line and no relay.
"""
