# SPDX-License-Identifier: Apache-2.0

"""Registration of ``openstack fairness`` in python-openstackclient, which
requires the names in this module.
"""

import argparse
from typing import Any

from nova_fairness.client import http

DEFAULT_API_VERSION = '1'
API_VERSION_OPTION = 'os_fairness_api_version'
API_NAME = 'fairness'
API_VERSIONS = {'1': 'nova_fairness.client.http.FairnessApi'}


def make_client(instance: Any) -> http.FairnessApi:
    """Create the API client of the commands.

    :param instance: the ClientManager of the command line.
    """
    cloud, service = instance.sdk_connection.config, 'compute'
    client = http.FairnessApi(
        instance.session,
        service_type=service,
        interface=cloud.get_interface(service),
        region_name=cloud.get_region_name(service),
        endpoint_override=cloud.get_endpoint(service),
        user_agent='nova-fairness',
    )
    client.attach(instance.sdk_connection)
    return client


def build_option_parser(
    parser: argparse.ArgumentParser,
) -> argparse.ArgumentParser:
    """Add the global options of this plugin."""
    parser.add_argument(
        '--os-fairness-api-version',
        metavar='<fairness-api-version>',
        help='Version of the fairness API '
        f'(default: {DEFAULT_API_VERSION}, the only version)',
    )
    return parser
