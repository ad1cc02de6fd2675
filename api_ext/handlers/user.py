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

"""Answers how heavy users are."""

from api_ext import asked as asked_module
from api_ext import owners
from api_ext.handlers import owner
from api_ext.policies import user as policies

_USERS = owner.Kind(
    singular='user',
    plural='users',
    method='list_users',
    shape=owners.of_users,
    keys=owner.KEYS,
)


def index(asked: asked_module.Asked) -> asked_module.Answer:
    """List users."""
    return owner.index(asked, _USERS)


def show(asked: asked_module.Asked) -> asked_module.Answer:
    """Show one user."""
    asked.caller.require(policies.SHOW, user_id=asked.names['id'])
    return owner.show(asked, _USERS)
