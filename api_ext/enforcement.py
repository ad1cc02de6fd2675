# SPDX-License-Identifier: Apache-2.0

"""Asks oslo.policy who may do what."""

from collections.abc import Mapping
import dataclasses
from typing import Any

from oslo_config import cfg
from oslo_policy import policy

from api_ext import faults
from api_ext import policies


class Enforcement:
    """Rules of this interface, with what an operator's files say of them.

    It reads the files that Nova reads (``[oslo_policy]``), and they are read
    again when they change.

    :param conf: Nova's.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._enforcer = enforcer(conf)

    def allows(
        self, rule: str, target: Mapping[str, Any], context: Any
    ) -> bool:
        """Tell whether a caller may do something.

        A token without a scope may do nothing, and one of a domain only what
        rules for domains allow: a role in one domain is none in the cloud. A
        field that a token or a target lacks equals nothing: oslo.policy would
        write it ``None`` and compare that.

        :param target: what the rule may refer to.
        :param context: of oslo.context.
        """
        creds = _known(context.to_policy_values())
        registered = self._enforcer.registered_rules.get(rule)
        scopes = registered.scope_types if registered else None
        if _scope(creds) not in (scopes or policies.SCOPES):
            return False
        try:
            return bool(self._enforcer.authorize(rule, _known(target), creds))
        except policy.InvalidScope:
            return False


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value for key, value in values.items() if value not in (None, '')
    }


def _scope(creds: Mapping[str, Any]) -> str:
    """Scope of a token, as oslo.policy names it; '' without one."""
    for key, scope in (
        ('system_scope', 'system'),
        ('domain_id', 'domain'),
        ('project_id', 'project'),
    ):
        if creds.get(key):
            return scope
    return ''


def enforcer(conf: cfg.ConfigOpts) -> policy.Enforcer:
    """Make an enforcer that knows the defaults."""
    made = policy.Enforcer(conf)
    made.register_defaults(policies.list_rules())
    return made


def installed_enforcer() -> policy.Enforcer:
    """Make one of Nova's files, for the tools of oslo.policy."""
    conf = cfg.ConfigOpts()
    conf([], project='nova')
    return enforcer(conf)


@dataclasses.dataclass(frozen=True)
class Caller:
    """The caller.

    :ivar context: of oslo.context, as Keystone's middleware left it.
    """

    context: Any
    enforcement: Enforcement

    @property
    def user_id(self) -> str | None:
        """Of the token."""
        return self.context.user_id or None

    @property
    def project_id(self) -> str | None:
        """Of the token; ``None`` for one of the system."""
        return self.context.project_id or None

    @property
    def request_id(self) -> str:
        """Of this request, ``req-...``."""
        return str(self.context.request_id)

    def may(self, rule: str, **target: Any) -> bool:
        """Tell whether the policy allows something."""
        return self.enforcement.allows(rule, target, self.context)

    def require(self, *rules: str, **target: Any) -> None:
        """Go on if one of these rules allows it.

        :raises Forbidden: otherwise, in Nova's words.
        """
        if not any(self.may(rule, **target) for rule in rules):
            raise faults.Forbidden(
                f"Policy doesn't allow {' or '.join(rules)} to be performed."
            )
