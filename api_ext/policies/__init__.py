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

"""Who may do what: rules of oslo.policy with their defaults."""

from collections.abc import Sequence

from oslo_policy import policy

from api_ext.policies import action
from api_ext.policies import document
from api_ext.policies import host
from api_ext.policies import instance
from api_ext.policies import plugin
from api_ext.policies import project
from api_ext.policies import user


def list_rules() -> Sequence[policy.DocumentedRuleDefault]:
    """List every rule."""
    return [
        *plugin.RULES,
        *document.RULES,
        *action.RULES,
        *host.RULES,
        *user.RULES,
        *project.RULES,
        *instance.RULES,
    ]
