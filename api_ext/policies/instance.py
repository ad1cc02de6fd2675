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

"""Instances."""

from api_ext.policies import base

SHOW = 'os_fairness_api:instances:show'

RULES = (
    base.rule(
        'instances',
        'show',
        f'{base.OPERATOR} or (role:reader and project_id:%(project_id)s)',
        'Show why an instance is treated as it is. By default whoever may '
        'see it in Nova: readers of its project. They are told how heavy the '
        'user is who started it, as they are told what it uses.',
        'GET /fairness/instances/{uuid}',
    ),
)
