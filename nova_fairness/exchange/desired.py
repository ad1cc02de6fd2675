# SPDX-License-Identifier: Apache-2.0

"""Metric and policy that a whole domain is to use: a value with an epoch.

The newest epoch wins; two that were made at once are ordered by what they
say, the origin first, so that every node takes the same one.
"""

import dataclasses
from typing import Annotated

import msgspec

from nova_fairness import exception
from nova_fairness.exchange import limits
from nova_fairness.model import caller

LARGEST_EPOCH = 2**53 - 1
"""Every number up to it is exact in JSON."""

_Word = Annotated[str, msgspec.Meta(max_length=limits.LONGEST_NAME)]


@dataclasses.dataclass(frozen=True, slots=True)
class DesiredChoice:
    """The choice of metric and policy for all nodes.

    :ivar epoch: 1..LARGEST_EPOCH, one more with every change.
    :ivar metric: name of the metric.
    :ivar policy: name of the policy.
    :ivar origin: who made the epoch: where peers have keys, the controller,
        otherwise the host on which it was set.
    :ivar signature: of the controller; empty where peers have no keys.
    :ivar user_id: user who asked for it; empty if not known.
    :ivar request_id: request that asked for it; empty if not known.
    """

    epoch: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_EPOCH)]
    metric: limits.Name
    policy: limits.Name
    origin: limits.Name
    signature: _Word = ''
    user_id: _Word = ''
    request_id: _Word = ''

    def __post_init__(self) -> None:
        limits.check_printable(
            metric=self.metric,
            policy=self.policy,
            origin=self.origin,
            signature=self.signature,
            user_id=self.user_id,
            request_id=self.request_id,
        )

    def is_newer_than(self, other: 'DesiredChoice | None') -> bool:
        """Tell which of two wins; everything wins over nothing."""
        if other is None:
            return True
        return _order(self) > _order(other)


def _order(choice: DesiredChoice) -> tuple[int, str, str, str]:
    return choice.epoch, choice.origin, choice.metric, choice.policy


def read(value: object) -> DesiredChoice:
    """Read the output of :func:`dataclasses.asdict`; trust nothing.

    :raises ReportRefused: naming what was wrong and what was expected.
    """
    return limits.converted(value, DesiredChoice, 'the desired state')


def newest(*known: DesiredChoice | None) -> DesiredChoice | None:
    """The choice that wins."""
    winner: DesiredChoice | None = None
    for item in known:
        if item is not None and item.is_newer_than(winner):
            winner = item
    return winner


def after(
    known: DesiredChoice | None,
    metric: str,
    policy: str,
    origin: str,
    by: caller.Asker = caller.UNKNOWN,
) -> DesiredChoice:
    """Make the next epoch.

    :param by: who asked for it.
    :raises ReportRefused: if there is none: an epoch was set too far ahead.
    """
    epoch = 1 if known is None else known.epoch + 1
    if epoch > LARGEST_EPOCH:
        raise exception.ReportRefused(
            'bounds', f'there is no epoch after {LARGEST_EPOCH}'
        )
    return DesiredChoice(
        epoch,
        metric,
        policy,
        origin,
        user_id=by.user_id,
        request_id=by.request_id,
    )
