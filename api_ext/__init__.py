# SPDX-License-Identifier: Apache-2.0

"""The extension of nova-api: ``/fairness`` over HTTP.

Start with ``application``: it passes a request to its handler. It never
decides what is fair; it asks agents and the cluster service.
"""
