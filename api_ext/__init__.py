# SPDX-License-Identifier: Apache-2.0

"""The extension of nova-api: ``/fairness`` over HTTP.

Start with ``application``, which passes a request to its handler. The package
makes no decisions about fairness; it queries agents and the cluster service.
"""
