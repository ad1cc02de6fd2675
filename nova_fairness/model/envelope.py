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

"""The form that oslo.messaging gives to a message: JSON that holds JSON."""

from collections.abc import Mapping
import json
from typing import Any

from nova_fairness import exception

_VERSION = '2.'


def message(body: bytes) -> Mapping[str, Any]:
    """Read the inner message. Errors show nothing of it.

    :param body: as it came.
    :raises Unreadable: if it is not of the form known.
    """
    try:
        envelope = json.loads(body)
        version = envelope['oslo.version']
        inner = json.loads(envelope['oslo.message'])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise exception.Unreadable(
            f'a message is not of the form of oslo.messaging:'
            f' {type(error).__name__}'
        ) from None
    if not isinstance(inner, dict) or not str(version).startswith(_VERSION):
        raise exception.Unreadable(
            f'a message must be of version {_VERSION}x and an object'
        )
    return inner
