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

"""Reads the headers by which clients ask for a version of Nova's API.

The interface has no versions of its own; what clients send anyway is
accepted, and what is no version is refused.
"""

from collections.abc import Mapping
import re

from api_ext import faults

NEW = 'OpenStack-API-Version'
OLD = 'X-OpenStack-Nova-API-Version'

_VERSION = re.compile(r'(latest|[1-9][0-9]{0,3}\.(0|[1-9][0-9]{0,3}))')
_SERVICES = ('compute', 'nova')


def check(headers: Mapping[str, str]) -> dict[str, str]:
    """Judge the versions that are asked for.

    :returns: headers of the answer.
    :raises BadRequest: if one is no version.
    """
    answer = {'Vary': f'{NEW}, {OLD}'}
    old = headers.get(OLD)
    if old is not None:
        _check(old.strip())
        answer[OLD] = old.strip()
    for part in headers.get(NEW, '').split(','):
        service, _, wanted = part.strip().partition(' ')
        if service.lower() in _SERVICES:
            _check(wanted.strip())
            answer[NEW] = f'compute {wanted.strip()}'
    return answer


def _check(wanted: str) -> None:
    if not _VERSION.fullmatch(wanted):
        raise faults.BadRequest(
            f'API Version String {wanted[:40]!r} is of invalid format. It '
            'must be of format MajorNum.MinorNum or latest.'
        )
