# SPDX-License-Identifier: Apache-2.0

"""Types of the answers of agents, for programs that read them.

The manual shows these texts, and a test compares the fields with the answers
of an agent. ``None`` stands for a number that is not known.
"""

from typing import TypeAlias
from typing import TypedDict

HostKey: TypeAlias = str
PluginKey: TypeAlias = str
NameKey: TypeAlias = str
ControlKey: TypeAlias = str
ResourceKey: TypeAlias = str
UuidKey: TypeAlias = str
UserKey: TypeAlias = str
ProjectKey: TypeAlias = str


class ChoiceFields(TypedDict):
    """Answer of ``set_metric`` and ``set_policy``."""

    host: str
    """The node."""
    from_round: int
    """The first round that certainly runs with the choice."""
    epoch: int
    """The epoch that was created or accepted."""
    metric: str
    """The metric of that epoch."""
    policy: str
    """The policy of that epoch."""
    origin: str
    """The node that created that epoch or, if agents use keys, the
    controller.
    """
    signature: str
    """Signature of that controller; empty if agents use no keys. Since 1.4."""
    user_id: str
    """User who made the choice; empty if unknown. Since 1.4."""
    request_id: str
    """ID of the request; empty if unknown. Since 1.4."""
    warning: str
    """Warning if users can get less with this metric and policy than without
    any agent, with a policy that suits the metric. The choice is effective
    nevertheless. Empty without a warning. Since 1.3.
    """


class PauseFields(TypedDict):
    """Answer of ``pause`` and ``resume``."""

    host: str
    """The node."""
    from_round: int
    """The first round that has certainly paused or resumed."""
    paused: bool
    """Whether the node is paused from then on."""
    persistent: bool
    """Whether this is saved, so that a restart does not change it."""
    problem: str
    """Reason why this is not saved; empty if it is saved."""


class ResetFields(TypedDict):
    """Answer of ``reset``."""

    host: str
    """The node."""
    from_round: int
    """The first round that certainly begins with neutral weights."""


class PreferencesFields(TypedDict):
    """Answer of ``set_preferences``."""

    host: str
    """The node."""
    from_round: int
    """The first round that certainly divides by these preferences."""
    preferences_count: int
    """Number of VMs with a preference, including those of
    ``preferences_file``.
    """
    persistent: bool
    """Whether this is saved, so that a restart does not change it."""
    problem: str
    """Reason why this is not saved; empty if it is saved."""


class DesiredFields(TypedDict):
    """The newest desired state in the node's view."""

    epoch: int
    """Its epoch; 0 if no choice was ever made."""
    metric: str
    """Its metric; empty at epoch 0."""
    policy: str
    """Its policy; empty at epoch 0."""
    origin: str
    """Node or controller that made it; empty at epoch 0."""
    signature: str
    """Signature of that controller; empty where peers have no keys. Since
    1.4.
    """
    user_id: str
    """User who made the choice; empty if not given. Since 1.4."""
    request_id: str
    """Id of the request; empty if not given. Since 1.4."""
    shared: bool
    """Whether all nodes can read this state from a common store."""
    problem: str
    """Fault of that store, or the reason why its content is not used; empty
    without a fault.
    """


class RoundFields(TypedDict):
    """The last round that ended."""

    number: int
    """Number of the round since the agent started."""
    wall_s: float
    """When the round began, seconds of the epoch of Unix."""
    duration_s: float
    """Seconds that the round took."""
    enforced: bool
    """Whether the round wrote to the kernel."""
    instances_count: int
    """Number of VMs on this node."""
    users_count: int
    """Number of users of all known nodes."""
    changed_count: int
    """Number of controls that were written."""
    failed_count: int
    """Number of failed writes of controls."""
    missed_count: int
    """Number of rounds that were skipped before this round."""
    errors: list[str]
    """Texts of errors: the first 20, and the first 300 characters of each."""


class PeerFields(TypedDict):
    """Another node."""

    age_s: float | None
    """Seconds since its newest report arrived; null if no report is used."""
    left_out: str | None
    """Reason why its report is not used; null if it is used."""


class ControlFields(TypedDict):
    """A control."""

    works: bool
    """Whether the control has an effect on VMs of this node."""
    why: str
    """The kernel interface by which it works, or why it does not work."""
    without_effect: dict[UuidKey, str]
    """VMs on which the control has no effect, by UUID, with the reason."""


class ShadowFields(TypedDict):
    """The shadow metric, which is computed and not used."""

    metric: str
    """Its name."""
    round: int
    """The round that it measured, or should have measured."""
    problem: str
    """Reason why it has no numbers of this round, such as an exceeded
    deadline; empty if it has.
    """


class StatusFields(TypedDict):
    """Answer of ``get_status``."""

    host: str
    """The node."""
    boot_id: str
    """Id of this run of the agent; it changes with every start."""
    version: str
    """Version of the agent's package."""
    metric: str
    """Metric in use."""
    policy: str
    """Policy in use."""
    epoch: int
    """Epoch of the desired state in use; 0 if the configuration applies."""
    origin: str
    """Node or controller that made that epoch; empty at 0."""
    refused: str
    """Reason why the newest desired state is not in use on this node, such as
    a metric that is not installed; empty if it is in use.
    """
    warning: str
    """Warning if users can get less with the metric and policy in use than
    without any agent, with a policy that suits the metric. Empty without a
    warning. Since 1.3.
    """
    desired: DesiredFields
    """The newest desired state that the node knows."""
    paused: bool
    """Whether an operator paused this node."""
    enforce: bool
    """``[fairness] enforce`` of the configuration."""
    interval_s: float
    """Seconds from one round to the next."""
    next_round: int
    """Number of the next round."""
    round: RoundFields | None
    """The last round that ended; null if no round has ended."""
    peers: dict[HostKey, PeerFields]
    """All other nodes that are known, by name."""
    controls: dict[ControlKey, ControlFields]
    """Controls that can steer; empty before the first round. Since 1.1."""
    quarantined: dict[PluginKey, str]
    """Metrics and policies in quarantine, by name, with their fault."""
    shadow: ShadowFields | None
    """State of ``[fairness] shadow_metric``; null if there is none, or it has
    not measured a round yet. Since 1.8.
    """
    unsaved: list[str]
    """Parts of the agent's state that are not saved to the disk, with the
    reason: choices of operators, original values of controls, state of
    policies. Each round tries to write them again. Since 1.4.
    """
    exchange: dict[NameKey, int]
    """Counts of the exchange of reports since the agent started; see
    :doc:`/reference/exchange`."""
    transport: dict[NameKey, int]
    """Counts of the messaging driver since the agent started; see
    :doc:`/reference/messaging-driver`. Empty with drivers that do not
    count."""


class ListedInstanceFields(TypedDict):
    """A VM of the node."""

    uuid: str
    """UUID of the VM."""
    name: str
    """The name that its user gave it; its name in libvirt if Nova does not
    tell."""
    domain: str
    """Its name in libvirt."""
    user: str
    """Id of the user who started it."""
    user_name: str
    """Name for people; the id if no name is known."""
    project: str
    """Id of the project that owns it."""
    project_name: str
    """Name for people; the id if no name is known."""
    vcpus_count: int
    """Number of its vCPUs."""
    memory_bytes: int
    """Size of its memory."""
    heaviness_quotas: float | None
    """Heaviness of the VM, which determines its weights."""
    shadow_heaviness_quotas: float | None
    """Heaviness of the VM by the shadow metric; null if it is not known.
    Since 1.8.
    """
    preference_ratio: float | None
    """Preference of its owner; 1 if the owner gave none, null before the first
    decision. Since 1.1.
    """
    wanting: dict[ControlKey, bool]
    """Whether the VM waits for more of the resource that a control steers, by
    control; empty before the first decision.
    """
    weight_ratios: dict[ControlKey, float]
    """Weights by control; empty before the first decision. 1 is neutral, more
    is more service.
    """
    applied_units: dict[ControlKey, int]
    """Values that the kernel holds, by control that is steered. ``cpu``:
    ``cpu.shares`` of control groups v1, ``cpu.weight`` of v2. ``memory``:
    protected bytes. ``blkio``: a weight. ``network``: bytes per second that
    the VM gets in any case, in each direction.
    """


class InstancesFields(TypedDict):
    """Answer of ``list_instances``."""

    host: str
    """The node."""
    round: int | None
    """The round that the answer describes; null if no round has ended."""
    instances: list[ListedInstanceFields]
    """The VMs of this node, sorted by UUID."""
    shadow_metric: str
    """Name of the shadow metric; empty if there is none. Since 1.8."""


class UserFields(TypedDict):
    """A user."""

    heaviness_quotas: float | None
    """Heaviness of all the user's VMs on all known nodes."""
    shadow_heaviness_quotas: float | None
    """The same by the shadow metric; null if it is not known. Since 1.8."""
    instances_here_count: int
    """Number of the user's VMs on this node."""
    usage_quotas: dict[ResourceKey, float | None]
    """Use of all the user's VMs, as a fraction of the user's quota: 1 is the
    whole quota of this resource.
    """


class UsersFields(TypedDict):
    """Answer of ``list_users``."""

    host: str
    """The node that answers."""
    round: int | None
    """The round that the answer describes; null if no round has ended."""
    users: dict[UserKey, UserFields]
    """Users of all known nodes, by id; projects with ``[fairness] entity =
    project``. At most 10,000: first users with VMs on this node, then the
    heaviest.
    """
    entity: str
    """``user`` or ``project``: the kind of these ids. Since 1.2."""
    shadow_metric: str
    """Name of the shadow metric; empty if there is none. Since 1.8."""


class ProjectFields(TypedDict):
    """A project."""

    heaviness_quotas: float | None
    """``domain``: as in ``list_users``. ``host``: the sum of the heaviness of
    its VMs on this node, without the VMs of the same users elsewhere.
    """
    shadow_heaviness_quotas: float | None
    """The same by the shadow metric; null if it is not known. Since 1.8."""
    instances_here_count: int
    """Number of its VMs on this node."""
    usage_quotas: dict[ResourceKey, float | None]
    """Use of its VMs. Empty before the first measurement. ``domain``: 1 is the
    project's whole quota. ``host``: 1 is an equal part of the cloud for each
    user."""


class ProjectsFields(TypedDict):
    """Answer of ``list_projects``."""

    host: str
    """The node that answers."""
    round: int | None
    """The round that the answer describes; null if no round has ended."""
    entity: str
    """``user`` or ``project``: agents compare users or projects."""
    scope: str
    """``host``: the numbers count VMs on this node. ``domain``: VMs on all
    known nodes.
    """
    projects: dict[ProjectKey, ProjectFields]
    """Projects by id; at most 10,000: first those with VMs on this node, then
    the heaviest.
    """
    shadow_metric: str
    """Name of the shadow metric; empty if there is none. Since 1.8."""


class PluginFields(TypedDict):
    """An installed metric or policy."""

    name: str
    """Name for ``set_metric`` or ``set_policy``."""
    description: str
    """One sentence; ``unusable:`` and the reason if it cannot be loaded."""


class PluginsFields(TypedDict):
    """Answer of ``get_plugins``."""

    host: str
    """The node."""
    metric: str
    """The metric in use on this node."""
    policy: str
    """The policy in use on this node."""
    metrics: list[PluginFields]
    """Installed metrics, sorted by name."""
    policies: list[PluginFields]
    """Installed policies, sorted by name."""


class UserUsageFractions(TypedDict):
    """A user or project."""

    usage_parts: dict[ResourceKey, float | None]
    """Fractions of the amounts of all known nodes, 0 to 1, by resource; null
    if no known node has the resource.
    """


class UsageFields(TypedDict):
    """Answer of ``get_usage``."""

    host: str
    """The node that answers."""
    round: int | None
    """The newest round; null if no round has ended: then ``users`` is
    empty.
    """
    entity: str
    """``user`` or ``project``."""
    users: dict[UserKey, UserUsageFractions]
    """Use by id of the user or project."""


class IdleFields(TypedDict):
    """Answer of ``get_idle``."""

    host: str
    """The node that answers."""
    round: int | None
    """The newest round; null if no round has ended: then ``idle`` is empty."""
    idle: dict[UuidKey, float]
    """Seconds for which VMs have been idle, by UUID."""


class WantFields(TypedDict):
    """A VM, and the CPUs that it wants."""

    owner: str
    """Id of its owner."""
    wanted_cpus: float
    """CPUs that it would have used if there were enough: 1 is one CPU all the
    time. This is computed from the time for which it waited for a CPU.
    """
    got_cpus: float
    """CPUs that it used."""
    weight_units: int | None
    """Its weight in the kernel, as in ``applied_units`` of ``list_instances``;
    null if not known.
    """
    seen_s: float
    """Seconds of its history on this node, since the agent began."""


class LackingFields(TypedDict):
    """Answer of ``get_lacking``."""

    host: str
    """The node that answers."""
    round: int | None
    """The newest round; null if no round has ended: then ``instances`` is
    empty.
    """
    entity: str
    """``user`` or ``project``: the kind of the id in ``owner``."""
    cpus_count: int | None
    """Number of CPUs of the node for VMs; null if no round has ended."""
    instances: dict[UuidKey, WantFields]
    """VMs by UUID, except VMs that were not seen yet at both ends of a
    round.
    """


class ForecastOfUserFields(TypedDict):
    """Sums over the VMs of one owner on this node."""

    name: str
    """Name of the owner; the id if it is not known."""
    instances_here_count: int
    """Number of the owner's VMs on this node."""
    gets_cpus: float
    """CPUs that the VMs got on average in the sampled rounds."""
    wants_cpus: float
    """CPUs that the VMs would use if there were enough, as far as that can be
    seen.
    """
    would_get_cpus: float
    """CPUs that the VMs would get."""
    change_cpus: float
    """CPUs that the VMs would gain on average; below 0: lose."""
    change_spread_cpus: float | None
    """Standard deviation of the change between rounds; null with one round. A
    smaller change is noise.
    """


class ForecastOfInstanceFields(TypedDict):
    """A VM of the node."""

    uuid: str
    """UUID of the VM."""
    name: str
    """Name of the VM."""
    user: str
    """Id of its user."""
    user_name: str
    """Name of its user; the id if it is not known."""
    project: str
    """Id of its project."""
    project_name: str
    """Name of its project; the id if it is not known."""
    gets_cpus: float
    """As above, of this VM."""
    wants_cpus: float
    """As above, of this VM."""
    would_get_cpus: float
    """As above, of this VM."""
    change_cpus: float
    """As above, of this VM."""
    change_spread_cpus: float | None
    """As above, of this VM."""
    weight_ratio: float
    """Weight of its CPU; 1 is neutral. With a policy like *thesis* it is a
    position in a range from 0 to 1.
    """
    cpu_units: int | None
    """Value that would be written to the kernel; null if none would be
    written.
    """


class ForecastFields(TypedDict):
    """Forecast of the service of VMs with one metric in force."""

    metric: str
    """Name of the metric."""
    in_force: bool
    """Whether the node uses this metric now."""
    problem: str
    """Reason why there is no forecast; empty if there is one."""
    settled: bool
    """Whether the weights became constant. If not, they continue to change,
    and the numbers are those of one round.
    """
    rounds_count: int
    """Number of simulated rounds."""
    sampled_rounds_count: int
    """Number of sampled rounds of the last five minutes, at most one in ten
    seconds.
    """
    users: dict[UserKey, ForecastOfUserFields]
    """Owners with VMs on this node, by id of the user or project."""
    instances: list[ForecastOfInstanceFields]
    """The VMs of the node, sorted by UUID."""


class PreviewFields(TypedDict):
    """Answer of ``get_preview``."""

    host: str
    """The node that answers."""
    round: int | None
    """The last round that the forecast is made from; null if no round has
    ended.
    """
    entity: str
    """``user`` or ``project``: agents compare users or projects."""
    policy: str
    """The policy in use."""
    enforced: bool | None
    """Whether weights are in force now. If they are, the present service of
    VMs already follows from weights.
    """
    not_foreseen: list[str]
    """Controls other than ``cpu`` for which VMs compete now: their weights
    would change, too, but the forecast omits this effect.
    """
    metrics: list[ForecastFields]
    """One entry for each metric, sorted by name."""


class HeavinessFields(TypedDict):
    """Heaviness of a VM, in quotas: 1 is the whole quota of its owner."""

    total: float | None
    """Heaviness of the VM: ``heaviness_quotas`` of ``list_instances``."""
    additive: bool | None
    """Whether ``total`` is the sum of ``by_resource`` and ``elsewhere``, up
    to rounding. Null if the parts are not known."""
    by_resource: dict[ResourceKey, float]
    """The part of each resource. If the metric adds parts, this is exactly the
    part that it added. If not, it is the heaviness that the VM would have with
    this resource alone; with ``DominantShareMetric`` the largest of these is
    the total. A value below 0 means that the VM leaves this resource to
    others.
    """
    elsewhere: float | None
    """The part of the owner's VMs on other nodes, which report one number for
    all resources. 0 if the metric does not add it.
    """
    shadow: float | None
    """Heaviness of the VM by the shadow metric; null if it is not known.
    Since 1.8.
    """
    shadow_metric: str
    """Name of that metric; empty if there is none. Since 1.8."""


class EarlierWeightsFields(TypedDict):
    """Weights of a VM at the end of a minute."""

    at: str
    """UTC in the form of ISO 8601, such as ``2026-11-22T01:20:00Z``."""
    weights: dict[ControlKey, float]
    """Weights by control, as in ``weights``."""


class ExplainedFields(TypedDict):
    """A VM, with an explanation of its service."""

    uuid: str
    """UUID of the VM."""
    name: str
    """The name that its user gave it; its name in libvirt if Nova does not
    tell."""
    user_id: str
    """Id of the user who started it."""
    project_id: str
    """Id of the project that owns it."""
    user_name: str
    """Name of that user; the id if Nova does not tell."""
    project_name: str
    """Name of that project; the id if it is not known."""
    summary: str
    """Two to four sentences: what the VM gets and wants, how many others wait
    for the same, what its owner's fair part is and whether the owner has it,
    and what would change that. The sentences use the same facts as the
    numbers. About other VMs they tell only how many wait.
    """
    entity: str
    """``user`` or ``project``: the kind of its owner; shares are compared by
    owner.
    """
    metric: str
    """Metric in use."""
    policy: str
    """Policy in use."""
    enforced: bool
    """Whether weights of this node reach the kernel; false while the node is
    paused or only observes.
    """
    heaviness: HeavinessFields
    """Heaviness in quotas: 1 is an owner's whole quota."""
    endowment: dict[ResourceKey, float]
    """The amount of its node that the VM is entitled to."""
    quota: dict[ResourceKey, float]
    """The amount of all known nodes that its owner is entitled to."""
    usage: dict[ResourceKey, float]
    """The amount that the VM uses."""
    owner_usage: dict[ResourceKey, float]
    """The amount that all VMs of its owner use on all known nodes; compare it
    with ``quota``.
    """
    waiting: list[str]
    """Names of the resources for which the VM waits."""
    contended: list[str]
    """Names of the resources for which VMs compete on this node."""
    weights: dict[ControlKey, float]
    """Weights by control. While a plugin is in quarantine, the weights before
    that stay in force. 1 is neutral, more is more service; with the policy
    ``thesis`` it is a position in a range from 0 to 1.
    """
    weights_last_hour: list[EarlierWeightsFields]
    """Earlier weights, oldest first: one entry for each minute in which a
    weight changed by more than 1 %, with the weights at its end. At most 61
    entries. The list is cleared when the VM arrives on this node, and when the
    agent starts.
    """
    advice: list[str]
    """The sentences of the summary one by one, and after them the sentences
    about all other resources that the VM waits for. At least one sentence.
    """


class InstanceFields(TypedDict):
    """Answer of ``get_instance``."""

    host: str
    """The node."""
    round: int
    """The round that the answer describes."""
    instance: ExplainedFields
    """The VM."""
