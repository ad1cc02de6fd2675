# SPDX-License-Identifier: Apache-2.0

"""Check of the headers that request a version of Nova's API.

This API has no versions of its own. It accepts any version in the header, and
refuses malformed values.
"""

from collections.abc import Mapping
import re

from api_ext import faults

NEW = 'OpenStack-API-Version'
OLD = 'X-OpenStack-Nova-API-Version'

_VERSION = re.compile(r'(latest|[1-9][0-9]{0,3}\.(0|[1-9][0-9]{0,3}))')
_SERVICES = ('compute', 'nova')


def check_versions(headers: Mapping[str, str]) -> dict[str, str]:
    """Check the requested versions.

    :param headers: headers of the request.
    :returns: headers of the response.
    :raises BadRequest: if a value is not a version.
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
