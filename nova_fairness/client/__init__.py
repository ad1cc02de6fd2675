# SPDX-License-Identifier: Apache-2.0

"""Commands ``openstack fairness`` of python-openstackclient.

Start with ``plugin``, then ``base``. The package imports neither the agent nor
the cluster service.
"""
