# SPDX-License-Identifier: Apache-2.0

"""``openstack fairness``: commands of python-openstackclient.

Start with ``plugin``, then ``base``.
It never imports the agent or the cluster service.
"""
