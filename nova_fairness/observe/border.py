# SPDX-License-Identifier: Apache-2.0

"""Prometheus metrics and notifications of hosts that move between batch system
and cloud.
"""

from collections.abc import Mapping
import dataclasses

from nova_fairness.model import border as border_module
from nova_fairness.model import moments
from nova_fairness.observe import families
from nova_fairness.observe import notices

VERSION = '1.0'
"""Version of the payloads of hosts. The minor version rises when fields are
added.
"""

_BAD = frozenset(
    {
        border_module.HostEvent.EXPIRE,
        border_module.HostEvent.LOSE,
        border_module.HostEvent.REFUSE,
    }
)


@dataclasses.dataclass(frozen=True)
class BorderStatus:
    """State of the hosts that move between batch system and cloud.

    :ivar steps: number of steps that this process wrote, by event and cause.
    :ivar seen_at: time at which both systems were read, seconds of the epoch;
        ``None`` if this process is not the leader.
    :ivar states: number of hosts by state.
    :ivar cores: cores by system and kind: ``capacity``, ``used``, ``wanted``
        or ``overdue``.
    :ivar faults: number of faults that prevent moves of hosts.
    :ivar pledges: pledged parts of both systems, by account of a group.
    :ivar parts: decayed use of groups as parts of all hosts, by account and
        system.
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
    """Yield the metrics of the hosts; a process that is not the leader yields
    only the steps.
    """
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
    """Return the notification of the last step of a host.

    :param host: name of the host of this process.
    """
    step = node.history[-1]
    bound = border_module.future_system(node.state)
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
