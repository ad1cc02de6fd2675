# SPDX-License-Identifier: Apache-2.0

"""Facts of instances, from Nova's conductor."""

from nova import context
from nova import exception as nova_exception
from nova import objects

from nova_fairness.model import instance


def describe(uuid: str) -> instance.Description | None:
    """Query the owner and the flavor of an instance; may block.

    :param uuid: of the domain.
    :returns: ``None`` if Nova does not know it.
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
