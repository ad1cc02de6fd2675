# SPDX-License-Identifier: Apache-2.0

"""Checks of permissions with oslo.policy."""

from collections.abc import Mapping
import dataclasses
from typing import Any

from oslo_config import cfg
from oslo_policy import policy

from api_ext import faults
from api_ext import policies


class Enforcement:
    """Policy rules of this API, including an operator's changes.

    The rules are in the policy files of Nova (``[oslo_policy]``), which are
    read again after each change.

    :param conf: Nova's configuration.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._enforcer = create_enforcer(conf)

    def allows(
        self, rule: str, target: Mapping[str, Any], context: Any
    ) -> bool:
        """Return whether a rule permits a caller to act on a target.

        A token without a scope has no permissions. A token of a domain has
        only the permissions of rules for domains, because a role in one domain
        is no role in the cloud. An attribute that is missing in the token or
        in the target equals nothing; oslo.policy would compare it as ``None``.

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
    """Return the scope of a token, as oslo.policy names it; '' without one."""
    for key, scope in (
        ('system_scope', 'system'),
        ('domain_id', 'domain'),
        ('project_id', 'project'),
    ):
        if creds.get(key):
            return scope
    return ''


def create_enforcer(conf: cfg.ConfigOpts) -> policy.Enforcer:
    """Create an enforcer with the default rules."""
    made = policy.Enforcer(conf)
    made.register_defaults(policies.list_rules())
    return made


def installed_enforcer() -> policy.Enforcer:
    """Create an enforcer with Nova's policy files, for the tools of
    oslo.policy.
    """
    conf = cfg.ConfigOpts()
    conf([], project='nova')
    return create_enforcer(conf)


@dataclasses.dataclass(frozen=True)
class Caller:
    """The caller of a request.

    :ivar context: context of oslo.context, created by Keystone's middleware.
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

    def is_allowed(self, rule: str, **target: Any) -> bool:
        """Return whether the policy permits the caller to act on a target."""
        return self.enforcement.allows(rule, target, self.context)

    def require(self, *rules: str, **target: Any) -> None:
        """Check that one of the rules permits the request.

        :raises Forbidden: if none permits it, with Nova's text.
        """
        if not any(self.is_allowed(rule, **target) for rule in rules):
            raise faults.Forbidden(
                f"Policy doesn't allow {' or '.join(rules)} to be performed."
            )
