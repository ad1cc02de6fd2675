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

"""Metrics and policies that are installed."""

from api_ext.schemas import parts

_PLUGIN = parts.record(
    {
        'name': parts.TEXT,
        'description': parts.TEXT,
        'in_force': parts.TRUTH,
        'hosts_without': parts.TEXTS,
    },
    optional=('hosts_without',),
)

LIST = parts.record(
    {
        'metrics': parts.records({'metric': _PLUGIN}),
        'policies': parts.records({'policy': _PLUGIN}),
        **parts.PARTIAL,
    },
    optional=tuple(parts.PARTIAL),
)
