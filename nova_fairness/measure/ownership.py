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

_OWNER: Mapping[str, Callable[[instance.Instance], str]] = (
    types.MappingProxyType(
        {
            'user': operator.attrgetter('user_id'),
            'project': operator.attrgetter('project_id'),
        }
    )
)


def of_node(
    incarnations: Sequence[instance.Incarnation], entity: str
) -> usage_model.Ownership:
    """Say who owns the VMs of one node.

    :param incarnations: the VMs, row order of the result.
    :param entity: who is compared: ``user`` or ``project``.
    :raises ValueError: if ``entity`` is neither.
    """
    if entity not in _OWNER:
        expected = ' or '.join(_OWNER)
        raise ValueError(f'entity must be {expected}, got {entity!r}')
    owner = _OWNER[entity]
    owners = [owner(item.instance) for item in incarnations]
    users = tuple(sorted(set(owners)))
    place = {user: index for index, user in enumerate(users)}
    return usage_model.Ownership(
        users=users,
        user_index=np.array([place[item] for item in owners], dtype=np.intp),
        node_index=np.zeros(len(owners), dtype=np.intp),
    )


def extended(
    owners: usage_model.Ownership, users: Iterable[str]
) -> usage_model.Ownership:
    """Add users who own VMs elsewhere only.

    :param owners: of this node.
    :param users: ids, in any order, known or new.
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
