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

TOPIC = 'fairness'
"""Topic of the calls; the server of a node's agent is the node's name."""

VERSION = '1.1'
"""Version of the calls. Minor: methods or answers were added."""

DEFAULT_DOMAIN = 'nova-fairness'
"""Exchange of a fairness domain that nobody has named."""

LONGEST_NAME = 255
"""Characters of a name in an argument."""

MOST_NUMBERS = 10_000
"""Entries of an object in an argument."""

LARGEST_EPOCH = 2**53 - 1
"""Every number up to it is exact in JSON."""
