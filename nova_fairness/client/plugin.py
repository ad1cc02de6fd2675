# SPDX-License-Identifier: Apache-2.0

"""Makes ``openstack fairness`` known to python-openstackclient.

The names in this module are those that it looks for.
"""

import argparse
from typing import Any

from nova_fairness.client import http

DEFAULT_API_VERSION = '1'
API_VERSION_OPTION = 'os_fairness_api_version'
API_NAME = 'fairness'
API_VERSIONS = {'1': 'nova_fairness.client.http.FairnessApi'}


def make_client(instance: Any) -> http.FairnessApi:
    """Build what the commands talk through.

    :param instance: the ClientManager of the command line.
    """
    cloud, service = instance.sdk_connection.config, 'compute'
    made = http.FairnessApi(
        instance.session,
        service_type=service,
        interface=cloud.get_interface(service),
        region_name=cloud.get_region_name(service),
        endpoint_override=cloud.get_endpoint(service),
        user_agent='nova-fairness',
    )
    made.attach(instance.sdk_connection)
    return made


def build_option_parser(
    parser: argparse.ArgumentParser,
) -> argparse.ArgumentParser:
    """Add the options that belong to no command."""
    parser.add_argument(
        '--os-fairness-api-version',
        metavar='<fairness-api-version>',
        help='Version of the fairness API '
        f'(default: {DEFAULT_API_VERSION}, the only one)',
    )
    return parser
