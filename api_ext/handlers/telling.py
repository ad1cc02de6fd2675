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

"""What may be told of hosts, and to whom."""

from collections.abc import Mapping
from typing import Any

from api_ext import asked as asked_module
from api_ext.policies import host


def sees_hosts(asked: asked_module.Asked) -> bool:
    """Tell whether the caller may know hosts."""
    return asked.caller.may(host.LIST)


def why_not(missing: Mapping[str, str]) -> list[Mapping[str, str]]:
    """List hosts with reasons."""
    return [
        {'host': name, 'reason': reason}
        for name, reason in sorted(missing.items())
    ]


def partial(
    asked: asked_module.Asked, missing: Mapping[str, str]
) -> dict[str, Any]:
    """Say whether an answer is partial, and why to those who may know."""
    answer: dict[str, Any] = {'partial': bool(missing)}
    if sees_hosts(asked):
        answer['not_reached'] = why_not(missing)
    return answer
