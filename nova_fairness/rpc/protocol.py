# SPDX-License-Identifier: Apache-2.0

"""Topics, versions and limits of the RPCs to agents and the cluster
service.
"""

from collections.abc import Mapping
import types

TOPIC = 'fairness'
"""Topic of the calls to agents; the server of an agent is the name of its
node.
"""

REQUESTS_TOPIC = 'fairness-requests'
"""Topic of the calls to the cluster service; the server of a process is its
host.
"""

MOST_REQUESTS = 1000
"""Largest number of requests in one answer."""

MOST_DRY_RUN = 50
"""Largest number of requests in the answer of a dry run."""

VERSION = '1.8'
"""Version of the calls. A new minor number means new methods, arguments or
fields of answers.
"""

FIRST = '1.0'
"""First version of the RPCs."""

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
"""Version in which a call was added. A client sends the call with this
version, so that agents of an older release answer all calls that they know.
"""

ANSWERED_IN_S: Mapping[str, float] = types.MappingProxyType({'dry_run': 30.0})
"""Shortest time, in seconds, that callers wait for the answer to a call with a
long computation.
"""

DEFAULT_DOMAIN = 'nova-fairness'
"""Exchange of the calls if a fairness domain has no name."""

LONGEST_NAME = 255
"""Largest number of characters of a name in an argument."""

LONGEST_S = 1e9
"""Largest number of seconds of a duration in an argument."""

MOST_NUMBERS = 10_000
"""Largest number of entries of an object in an argument."""

LARGEST_EPOCH = 2**53 - 1
"""Largest epoch: every integer up to this is exact in JSON."""

NOBODY = 'unknown'
"""Name of the host in ``NotLeading`` while no process is the leader."""
