# SPDX-License-Identifier: Apache-2.0

"""Owners of VMs."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import operator
import types

import numpy as np

from nova_fairness.model import instance
from nova_fairness.model import usage as usage_model

_OWNER_GETTERS: Mapping[str, Callable[[instance.Instance], str]] = (
    types.MappingProxyType(
        {
            'user': operator.attrgetter('user_id'),
            'project': operator.attrgetter('project_id'),
        }
    )
)


def owners_of_node(
    incarnations: Sequence[instance.Incarnation], entity: str
) -> usage_model.Ownership:
    """Return the owners of the VMs of one node.

    :param incarnations: the VMs, row order of the result.
    :param entity: kind of the owners: ``user`` or ``project``.
    :raises ValueError: if ``entity`` is neither.
    """
    if entity not in _OWNER_GETTERS:
        expected = ' or '.join(_OWNER_GETTERS)
        raise ValueError(f'entity must be {expected}, got {entity!r}')
    owner = _OWNER_GETTERS[entity]
    owners = [owner(item.instance) for item in incarnations]
    users = tuple(sorted(set(owners)))
    place = {user: index for index, user in enumerate(users)}
    return usage_model.Ownership(
        users=users,
        user_index=np.array([place[item] for item in owners], dtype=np.intp),
        node_index=np.zeros(len(owners), dtype=np.intp),
    )


def with_other_users(
    owners: usage_model.Ownership, users: Iterable[str]
) -> usage_model.Ownership:
    """Add users who own VMs on other nodes only.

    :param owners: of this node.
    :param users: ids, in any sequence, known or new.
    :returns: the same rows with indices into the longer list.
    """
    everyone = tuple(sorted({*owners.users, *users}))
    place = {user: index for index, user in enumerate(everyone)}
    moved = np.array([place[user] for user in owners.users], dtype=np.intp)
    return usage_model.Ownership(
        users=everyone,
        user_index=moved[owners.user_index],
        node_index=owners.node_index,
    )
