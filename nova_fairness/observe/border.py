# SPDX-License-Identifier: Apache-2.0

"""Hosts between batch and cloud, as Prometheus metrics and notices."""

from collections.abc import Mapping
import dataclasses

from nova_fairness.model import border as border_module
from nova_fairness.model import moments
from nova_fairness.observe import families
from nova_fairness.observe import notices

VERSION = '1.0'
"""Of the payloads of hosts. Minor: fields were added."""

_BAD = frozenset(
    {
        border_module.HostEvent.EXPIRE,
        border_module.HostEvent.LOSE,
        border_module.HostEvent.REFUSE,
    }
)


@dataclasses.dataclass(frozen=True)
class BorderStatus:
    """The border at one moment.

    :ivar steps: number of steps that this process wrote, by event and cause.
    :ivar seen_at: when both sides were looked at last, seconds of the epoch;
        ``None`` if this process does not act.
    :ivar states: number of hosts by state.
    :ivar cores: by side and kind: ``capacity``, ``used``, ``wanted`` or
        ``overdue``.
    :ivar faults: number of sentences about what keeps hosts from moving.
    :ivar pledges: parts of both sides that groups were pledged, by account.
    :ivar parts: decayed parts of the hosts that they used, by account and
        side.
    """

    steps: Mapping[tuple[str, str], int]
    seen_at: float | None = None
    states: Mapping[str, int] = dataclasses.field(default_factory=dict)
    cores: Mapping[tuple[str, str], float] = dataclasses.field(
        default_factory=dict
    )
    faults: int = 0
    pledges: Mapping[str, float] = dataclasses.field(default_factory=dict)
    parts: Mapping[tuple[str, str], float] = dataclasses.field(
        default_factory=dict
    )


def metrics(border: BorderStatus) -> families.Metrics:
    """Make the numbers; without those that only who acts knows."""
    yield families.metric('partition_steps', sorted(border.steps.items()))
    if border.seen_at is None:
        return
    yield families.metric(
        'partition_hosts',
        [
            ((each.value,), border.states.get(each.value, 0))
            for each in border_module.HostState
        ],
    )
    yield families.metric('partition_cores', sorted(border.cores.items()))
    yield families.metric(
        'partition_group_pledge',
        [((name,), part) for name, part in sorted(border.pledges.items())],
    )
    yield families.metric('partition_group_used', sorted(border.parts.items()))
    yield families.metric('partition_faults', [((), border.faults)])
    yield families.metric(
        'partition_snapshot_timestamp_seconds', [((), border.seen_at)]
    )


def notice(node: border_module.BorderHost, host: str) -> notices.Notice:
    """Notice of a host that took a step.

    :param host: that tells it.
    """
    step = node.history[-1]
    bound = border_module.bound_for(node.state)
    return notices.Notice(
        f'fairness.host.{step.event.value}',
        notices.WARN if step.event in _BAD else notices.INFO,
        {
            'version': VERSION,
            'host': host,
            'at': moments.stamp(step.at),
            'name': node.host.name,
            'batch_name': node.host.batch,
            'cloud_name': node.host.cloud,
            'state': node.state.value,
            'bound_for': bound.value if bound else None,
            'cause': step.cause.value,
            'explanation': step.text,
            'until': None if node.until is None else moments.stamp(node.until),
        },
    )
