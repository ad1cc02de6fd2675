# SPDX-License-Identifier: Apache-2.0

"""Checks permissions with oslo.policy."""

from collections.abc import Mapping
import dataclasses
from typing import Any

from oslo_config import cfg
from oslo_policy import policy

from api_ext import faults
from api_ext import policies


class Enforcement:
    """Policy rules of this interface, with changes in an operator's files.

    The files are those of Nova (``[oslo_policy]``), and are read again after
    each change.

    :param conf: Nova's configuration.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._enforcer = enforcer(conf)

    def allows(
        self, rule: str, target: Mapping[str, Any], context: Any
    ) -> bool:
        """Whether a caller may do something.

        A token without a scope may do nothing. A token of a domain may only do
        what rules for domains allow: a role in one domain is no role in the
        cloud. A field that a token or a target lacks equals nothing:
        oslo.policy would compare it as ``None``.

        :param rule: name of the rule.
        :param target: values that the rule may refer to.
        :param context: context of oslo.context.
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
    """Make an enforcer that has the default rules."""
    made = policy.Enforcer(conf)
    made.register_defaults(policies.list_rules())
    return made


def installed_enforcer() -> policy.Enforcer:
    """Make an enforcer with Nova's files, for the tools of oslo.policy."""
    conf = cfg.ConfigOpts()
    conf([], project='nova')
    return enforcer(conf)


@dataclasses.dataclass(frozen=True)
class Caller:
    """The caller of a request.

    :ivar context: context of oslo.context, made by Keystone's middleware.
    :ivar enforcement: policy rules.
    """

    context: Any
    enforcement: Enforcement

    @property
    def user_id(self) -> str | None:
        """ID of the token's user."""
        return self.context.user_id or None

    @property
    def project_id(self) -> str | None:
        """ID of the token's project; ``None`` for a system token."""
        return self.context.project_id or None

    @property
    def request_id(self) -> str:
        """ID of this request, ``req-...``."""
        return str(self.context.request_id)

    def may(self, rule: str, **target: Any) -> bool:
        """Whether the policy allows something."""
        return self.enforcement.allows(rule, target, self.context)

    def require(self, *rules: str, **target: Any) -> None:
        """Check that one of these rules allows the request.

        :raises Forbidden: otherwise, with Nova's text.
        """
        if not any(self.may(rule, **target) for rule in rules):
            raise faults.Forbidden(
                f"Policy doesn't allow {' or '.join(rules)} to be performed."
            )
