# SPDX-License-Identifier: Apache-2.0

"""Answers how heavy projects are."""

from api_ext import asked as asked_module
from api_ext import owners
from api_ext.handlers import owner
from api_ext.policies import project as policies

_PROJECTS = owner.Kind(
    singular='project',
    plural='projects',
    method='list_projects',
    shape=owners.of_projects,
    keys=(*owner.KEYS, 'scope'),
)


def index(asked: asked_module.Asked) -> asked_module.Answer:
    """List projects."""
    return owner.index(asked, _PROJECTS)


def show(asked: asked_module.Asked) -> asked_module.Answer:
    """Show one project."""
    asked.caller.require(policies.SHOW, project_id=asked.names['id'])
    return owner.show(asked, _PROJECTS)
