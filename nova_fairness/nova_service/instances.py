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

"""What Nova knows of instances, asked of its conductor."""

from nova import context
from nova import exception as nova_exception
from nova import objects

from nova_fairness.model import instance


def describe(uuid: str) -> instance.Description | None:
    """Ask who owns an instance and what its flavor is; may block.

    :param uuid: of the domain.
    :returns: ``None`` if it is none of Nova's.
    """
    try:
        found = objects.Instance.get_by_uuid(
            context.get_admin_context(), uuid, expected_attrs=['flavor']
        )
    except nova_exception.InstanceNotFound:
        return None
    return instance.Description(
        user_id=str(found.user_id),
        project_id=str(found.project_id),
        display_name=str(found.display_name or ''),
        flavor=str(found.flavor.name),
        extra_specs={
            str(key): str(value)
            for key, value in (found.flavor.extra_specs or {}).items()
        },
        memory_bytes=int(found.flavor.memory_mb) * 2**20,
    )
