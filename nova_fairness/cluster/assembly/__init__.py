# SPDX-License-Identifier: Apache-2.0

"""The service and its parts, made from the configuration.

Start with ``queue_service``: it makes all that decides about requests.
It never decides itself, and knows no command line and no relay.
"""
