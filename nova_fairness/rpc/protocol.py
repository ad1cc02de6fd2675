# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Where agents listen for control calls, and what they answer to."""

from collections.abc import Mapping
import types

TOPIC = 'fairness'
"""Topic of the calls; the server of a node's agent is the node's name."""

VERSION = '1.3'
"""Version of the calls. Minor: methods or answers were added."""

FIRST = '1.0'
"""Version of the calls that there were from the beginning."""

SINCE: Mapping[str, str] = types.MappingProxyType(
    {
        'set_preferences': '1.1',
        'get_instance': '1.2',
        'get_plugins': '1.2',
        'list_projects': '1.2',
    }
)
"""Version in which a call appeared. It is asked for with that one, so that
agents of an older release answer all that they know."""

DEFAULT_DOMAIN = 'nova-fairness'
"""Exchange of a fairness domain that nobody has named."""

LONGEST_NAME = 255
"""Characters of a name in an argument."""

MOST_NUMBERS = 10_000
"""Entries of an object in an argument."""

LARGEST_EPOCH = 2**53 - 1
"""Every number up to it is exact in JSON."""
