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

"""Projects."""

from api_ext.policies import base

LIST = 'os_fairness_api:projects:list'
SHOW = 'os_fairness_api:projects:show'

RULES = (
    base.rule(
        'projects',
        'list',
        base.OPERATOR,
        'List how heavy all projects are.',
        'GET /fairness/projects',
    ),
    base.rule(
        'projects',
        'show',
        f'{base.OPERATOR} or (role:reader and project_id:%(project_id)s)',
        'Show how heavy a project is. By default its members may see it.',
        'GET /fairness/projects/{id}',
    ),
)
