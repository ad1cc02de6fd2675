# SPDX-License-Identifier: Apache-2.0

"""What an event does, for those that are over at once."""

from collections.abc import Callable
from collections.abc import Mapping

from fairness_lab.scenario import values
from fairness_lab.testbed import backend as backend_module

Action = values.Action
Do = Callable[[backend_module.Backend, str], None]

AT_ONCE: Mapping[Action, Do] = {
    Action.DESTROY: lambda backend, vm: backend.destroy_vm(vm),
    Action.FREEZE: lambda backend, vm: backend.freeze_vm(vm),
    Action.THAW: lambda backend, vm: backend.thaw_vm(vm),
    Action.KILL_AGENT: lambda backend, node: backend.stop_agents(
        [node], kill=True
    ),
    Action.START_AGENT: lambda backend, node: backend.start_agents(
        [node], wait=False
    ),
    Action.RESTART_AGENT: lambda backend, node: backend.restart_agent(node),
    Action.FREEZE_AGENT: lambda backend, node: backend.hold_agents([node]),
    Action.THAW_AGENT: lambda backend, node: backend.release_agents([node]),
    Action.CUT: lambda backend, node: backend.cut(node),
    Action.HEAL: lambda backend, node: backend.heal(node),
    Action.FREEZE_REDIS: lambda backend, _: backend.redis().freeze(),
    Action.THAW_REDIS: lambda backend, _: backend.redis().thaw(),
    Action.KILL_REDIS: lambda backend, _: backend.redis().kill(),
    Action.START_REDIS: lambda backend, _: backend.redis().start(),
    Action.FLUSH_REDIS: lambda backend, _: backend.redis().flush(),
}
"""By action; a start and a move take until the guest has booted."""
