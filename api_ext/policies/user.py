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

"""Users."""

from api_ext.policies import base

LIST = 'os_fairness_api:users:list'
SHOW = 'os_fairness_api:users:show'

RULES = (
    base.rule(
        'users',
        'list',
        base.OPERATOR,
        'List how heavy all users are.',
        'GET /fairness/users',
    ),
    base.rule(
        'users',
        'show',
        f'{base.OPERATOR} or (role:reader and user_id:%(user_id)s)',
        'Show how heavy a user is. By default one may see oneself.',
        'GET /fairness/users/{id}',
    ),
)
