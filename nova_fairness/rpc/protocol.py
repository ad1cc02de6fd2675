# SPDX-License-Identifier: Apache-2.0

"""Where agents listen for control calls, and what they answer to."""

from collections.abc import Mapping
import types

TOPIC = 'fairness'
"""Topic of the calls; the server of a node's agent is the node's name."""

REQUESTS_TOPIC = 'fairness-requests'
"""Topic of the calls to the cluster service; its server is its host."""

MOST_REQUESTS = 1000
"""Requests in one answer."""

MOST_DRY_RUN = 50
"""Requests that the answer of a dry run names."""

VERSION = '1.8'
"""Version of the calls. Minor: methods, arguments or answers were added."""

FIRST = '1.0'
"""Version of the calls that there were from the beginning."""

SINCE: Mapping[str, str] = types.MappingProxyType(
    {
        'set_preferences': '1.1',
        'get_instance': '1.2',
        'get_plugins': '1.2',
        'list_projects': '1.2',
        'get_preview': '1.4',
        'get_usage': '1.5',
        'get_idle': '1.6',
        'get_lacking': '1.7',
    }
)
"""Version in which a call appeared. It is asked for with that one, so that
agents of an older release answer all that they know."""

ANSWERED_IN_S: Mapping[str, float] = types.MappingProxyType({'dry_run': 30.0})
"""Seconds that callers wait at least for the answer to a call that computes
for long."""

DEFAULT_DOMAIN = 'nova-fairness'
"""Exchange of a fairness domain without a name."""

LONGEST_NAME = 255
"""Characters of a name in an argument."""

LONGEST_S = 1e9
"""Seconds of a span of time in an argument."""

MOST_NUMBERS = 10_000
"""Entries of an object in an argument."""

LARGEST_EPOCH = 2**53 - 1
"""Every number up to it is exact in JSON."""

NOBODY = 'unknown'
"""The host that ``NotLeading`` names while no process acts."""
