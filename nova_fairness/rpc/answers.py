# SPDX-License-Identifier: Apache-2.0

"""Types of the answers of agents, for programs that read them.

The manual shows these texts, and a test compares the fields with what an agent
answers. ``None`` is a number that is not known.
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
    """The round that runs with the choice at the latest."""
    epoch: int
    """The epoch that was made or taken over."""
    metric: str
    """The metric of that epoch."""
    policy: str
    """The policy of that epoch."""
    origin: str
    """The node or, where peers have keys, the controller that made that
    epoch."""
    signature: str
    """Of that controller; empty where peers have no keys. Since 1.4."""
    user_id: str
    """User who asked for it; empty if not given. Since 1.4."""
    request_id: str
    """Id of the request; empty if not given. Since 1.4."""
    warning: str
    """Says that users may be worse off with this metric and policy than
    without any agent, and which policy suits the metric. The choice is made
    all the same. Empty if there is nothing to warn of. Since 1.3."""


class PauseFields(TypedDict):
    """Answer of ``pause`` and ``resume``."""

    host: str
    """The node."""
    from_round: int
    """The round that has paused or resumed at the latest."""
    paused: bool
    """Whether the node is paused from then on."""
    persistent: bool
    """Whether this is saved, so that a restart does not change it."""
    problem: str
    """Why this is not saved; empty if it is."""


class ResetFields(TypedDict):
    """Answer of ``reset``."""

    host: str
    """The node."""
    from_round: int
    """The round that begins with neutral weights at the latest."""


class PreferencesFields(TypedDict):
    """Answer of ``set_preferences``."""

    host: str
    """The node."""
    from_round: int
    """The round that divides by these preferences at the latest."""
    preferences_count: int
    """VMs that have a preference, those of ``preferences_file`` included."""
    persistent: bool
    """Whether this is saved, so that a restart does not change it."""
    problem: str
    """Why this is not saved; empty if it is."""


class DesiredFields(TypedDict):
    """The newest desired state that the node knows."""

    epoch: int
    """Its epoch; 0 if nothing was ever chosen."""
    metric: str
    """Its metric; empty at epoch 0."""
    policy: str
    """Its policy; empty at epoch 0."""
    origin: str
    """Node or controller that made it; empty at epoch 0."""
    signature: str
    """Of that controller; empty where peers have no keys. Since 1.4."""
    user_id: str
    """User who asked for it; empty if not given. Since 1.4."""
    request_id: str
    """Id of the request; empty if not given. Since 1.4."""
    shared: bool
    """Whether there is a store that all nodes can ask."""
    problem: str
    """Fault of that store, or why what it holds is not taken; empty if there
    is none."""


class RoundFields(TypedDict):
    """The last round that ended."""

    number: int
    """Number of the round since the agent started."""
    wall_s: float
    """When the round began, since the epoch of Unix."""
    duration_s: float
    """Time that the round took."""
    enforced: bool
    """Whether the kernel was written."""
    instances_count: int
    """VMs on this node."""
    users_count: int
    """Users of all known nodes."""
    changed_count: int
    """Controls that were written."""
    failed_count: int
    """Writes that were refused."""
    missed_count: int
    """Rounds left out before it."""
    errors: list[str]
    """Texts: the first 20, the first 300 characters of each."""


class PeerFields(TypedDict):
    """One of the other nodes."""

    age_s: float | None
    """How long ago its newest report arrived; null if none is used."""
    left_out: str | None
    """Why its report is not used; null if it is."""


class ControlFields(TypedDict):
    """One of the controls."""

    works: bool
    """Whether VMs of this node are steered by it."""
    why: str
    """By what it works, or why it does not."""
    without_effect: dict[UuidKey, str]
    """VMs that it cannot steer, by UUID, and why not."""


class StatusFields(TypedDict):
    """Answer of ``get_status``."""

    host: str
    """The node."""
    boot_id: str
    """Id of this run of the agent; every start has another one."""
    version: str
    """Version of the agent's package."""
    metric: str
    """Metric in force."""
    policy: str
    """Policy in force."""
    epoch: int
    """Epoch of the desired state in force; 0 if the configuration counts."""
    origin: str
    """Node or controller that made that epoch; empty at 0."""
    refused: str
    """Why the newest desired state is not in force here, such as a metric
    that is not installed; empty if it is."""
    warning: str
    """Says that users may be worse off with the metric and policy in force
    than without any agent, and which policy suits the metric. Empty if
    there is nothing to warn of. Since 1.3."""
    desired: DesiredFields
    """The newest desired state that the node knows."""
    paused: bool
    """Whether an operator paused this node."""
    enforce: bool
    """``[fairness] enforce`` of the configuration."""
    interval_s: float
    """Seconds from round to round."""
    next_round: int
    """Number of the next round."""
    round: RoundFields | None
    """The last round that ended; null if none has."""
    peers: dict[HostKey, PeerFields]
    """All other nodes that are known, by name."""
    controls: dict[ControlKey, ControlFields]
    """Controls that can steer; empty before the first round. Since 1.1."""
    quarantined: dict[PluginKey, str]
    """Metrics and policies that misbehaved, by name, and their fault."""
    unsaved: list[str]
    """Parts of the agent's state that are not on the disk, and why: what
    operators chose, base values of controls, what policies remember. Each
    round tries to write them again. Since 1.4."""
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
    """Its vCPUs."""
    memory_bytes: int
    """Its memory."""
    heaviness_quotas: float | None
    """Heaviness by which the VM is treated."""
    preference_ratio: float | None
    """Preference of its owner; 1 unless something was said, null before the
    first decision. Since 1.1."""
    wanting: dict[ControlKey, bool]
    """Whether it waits for more, by control; empty before the first
    decision. Whether it waits for what this control steers."""
    weight_ratios: dict[ControlKey, float]
    """Weights by control; empty before the first decision. The weight: 1 is
    neutral, more is more service."""
    applied_units: dict[ControlKey, int]
    """Values that the kernel holds, by control that is steered. ``cpu``:
    ``cpu.shares`` of control groups v1, ``cpu.weight`` of v2. ``memory``:
    bytes that are protected. ``blkio``: a weight. ``network``: bytes per
    second that the VM gets in any case, in each direction."""


class InstancesFields(TypedDict):
    """Answer of ``list_instances``."""

    host: str
    """The node."""
    round: int | None
    """The round that this describes; null if none has ended."""
    instances: list[ListedInstanceFields]
    """The VMs of this node, sorted by UUID."""


class UserFields(TypedDict):
    """One of the users."""

    heaviness_quotas: float | None
    """Heaviness of all the user's VMs on all known nodes."""
    instances_here_count: int
    """VMs on this node."""
    usage_quotas: dict[ResourceKey, float | None]
    """Use of all the user's VMs, in parts of the user's quota: 1 is the whole
    quota of this resource."""


class UsersFields(TypedDict):
    """Answer of ``list_users``."""

    host: str
    """The node that answers."""
    round: int | None
    """The round that this describes; null if none has ended."""
    users: dict[UserKey, UserFields]
    """Users of all nodes that this one knows, by id; projects with
    ``[fairness] entity = project``. At most 10,000: first those that have
    VMs here, then the heaviest."""
    entity: str
    """``user`` or ``project``: whose ids these are. Since 1.2."""


class ProjectFields(TypedDict):
    """One of the projects."""

    heaviness_quotas: float | None
    """``domain``: as in ``list_users``. ``host``: the heaviness of the VMs
    themselves, added up, without what their users have elsewhere."""
    instances_here_count: int
    """VMs on this node."""
    usage_quotas: dict[ResourceKey, float | None]
    """Use of its VMs. Empty before the first measurement. ``domain``: 1 is the
    project's whole quota. ``host``: 1 is an equal part of the cloud for each
    user."""


class ProjectsFields(TypedDict):
    """Answer of ``list_projects``."""

    host: str
    """The node that answers."""
    round: int | None
    """The round that this describes; null if none has ended."""
    entity: str
    """``user`` or ``project``: who is compared."""
    scope: str
    """``host``: the numbers are of the VMs on this node. ``domain``: of all
    known nodes."""
    projects: dict[ProjectKey, ProjectFields]
    """By id; at most 10,000: first those that have VMs here, then the
    heaviest."""


class PluginFields(TypedDict):
    """A metric or policy that is installed."""

    name: str
    """Name as ``set_metric`` or ``set_policy`` takes it."""
    description: str
    """One sentence; ``unusable:`` and the reason if it cannot be loaded."""


class PluginsFields(TypedDict):
    """Answer of ``get_plugins``."""

    host: str
    """The node."""
    metric: str
    """The one in force on this node."""
    policy: str
    """The one in force on this node."""
    metrics: list[PluginFields]
    """Metrics that are installed, sorted by name."""
    policies: list[PluginFields]
    """Policies that are installed, sorted by name."""


class UserPartsFields(TypedDict):
    """A user or project."""

    usage_parts: dict[ResourceKey, float | None]
    """By resource. Part of what all known nodes have, 0 to 1; null if they
    have nothing of it."""


class UsageFields(TypedDict):
    """Answer of ``get_usage``."""

    host: str
    """The node that answers."""
    round: int | None
    """The newest round; null if none has ended, and ``users`` is empty
    then."""
    entity: str
    """``user`` or ``project``."""
    users: dict[UserKey, UserPartsFields]
    """By id of the user or project."""


class IdleFields(TypedDict):
    """Answer of ``get_idle``."""

    host: str
    """The node that answers."""
    round: int | None
    """The newest round; null if none has ended, and ``idle`` is empty then."""
    idle: dict[UuidKey, float]
    """By UUID of the VM. Seconds."""


class WantFields(TypedDict):
    """A VM, and the CPUs that it wants."""

    owner: str
    """Id of its owner."""
    wanted_cpus: float
    """CPUs that it would have used of a plenty: 1 is one CPU all the time.
    Follows from how long it waited for one."""
    got_cpus: float
    """CPUs that it used."""
    weight_units: int | None
    """Units by which its kernel divides CPUs, as in ``applied_units`` of
    ``list_instances``; null if not known."""
    seen_s: float
    """Seconds of its history on this node, since the agent began."""


class LackingFields(TypedDict):
    """Answer of ``get_lacking``."""

    host: str
    """The node that answers."""
    round: int | None
    """The newest round; null if none has ended, and ``instances`` is empty
    then."""
    entity: str
    """``user`` or ``project``, who is compared: ``owner`` is an id of that."""
    cpus_count: int | None
    """CPUs of the node for VMs; null if no round has ended."""
    instances: dict[UuidKey, WantFields]
    """By UUID of the VM; without those that were not seen at both ends of a
    round yet."""


class ForecastOfUserFields(TypedDict):
    """Sums over the VMs of one owner on this node."""

    name: str
    """Name; the id where it is not known."""
    instances_here_count: int
    """VMs on this node."""
    gets_cpus: float
    """CPUs that they got on average in the rounds that count."""
    wants_cpus: float
    """CPUs that they would use if there were enough, as far as that can be
    seen."""
    would_get_cpus: float
    """CPUs that they would get."""
    change_cpus: float
    """CPUs that they would gain on average; below 0, lose."""
    change_spread_cpus: float | None
    """Standard deviation of it between rounds; null with one round. A change
    that is smaller is noise."""


class ForecastOfInstanceFields(TypedDict):
    """A VM of the node."""

    uuid: str
    """The VM."""
    name: str
    """Its name."""
    user: str
    """Id of its user."""
    user_name: str
    """Name of its user; the id where it is not known."""
    project: str
    """Id of its project."""
    project_name: str
    """Name of its project; the id where it is not known."""
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
    place in a range from 0 to 1."""
    cpu_units: int | None
    """Value that would be written into the kernel; null if none would."""


class ForecastFields(TypedDict):
    """Service of VMs with one metric in force."""

    metric: str
    """Its name."""
    in_force: bool
    """Whether the node measures with it now."""
    problem: str
    """Why nothing is foreseen; empty if something is."""
    settled: bool
    """Whether weights stood still in the end. If not, they go on moving,
    and the numbers are those of one moment."""
    rounds_count: int
    """Rounds that were worked out."""
    sampled_rounds_count: int
    """Rounds of the last five minutes that count, at most one in ten
    seconds."""
    users: dict[UserKey, ForecastOfUserFields]
    """By id: those who are compared and have VMs on this node."""
    instances: list[ForecastOfInstanceFields]
    """The VMs of the node, sorted by UUID."""


class PreviewFields(TypedDict):
    """Answer of ``get_preview``."""

    host: str
    """The node that answers."""
    round: int | None
    """The round that it is made from; null if none has ended."""
    entity: str
    """``user`` or ``project``: who is compared."""
    policy: str
    """The policy that decides."""
    enforced: bool | None
    """Whether weights are in force now. If they are, what VMs get now
    already follows from weights."""
    not_foreseen: list[str]
    """Controls besides ``cpu`` for which VMs compete now: their weights
    would move, too, and what comes of that is not foreseen."""
    metrics: list[ForecastFields]
    """One entry for each metric, sorted by name."""


class HeavinessFields(TypedDict):
    """Heaviness of a VM, in quotas: 1 is the whole quota of its owner."""

    total: float | None
    """By which the VM is treated: ``heaviness_quotas`` of
    ``list_instances``."""
    additive: bool | None
    """Whether ``total`` is the sum of ``by_resource`` and ``elsewhere``, up
    to rounding. Null if the parts are not known."""
    by_resource: dict[ResourceKey, float]
    """The part that each resource has in it. Where the metric adds up, this
    is exactly what it added. Where it does not, it is how heavy the VM
    would be if this resource were the only one; of ``DominantShareMetric``
    the largest of them is the total. Less than 0 for what is left to
    others."""
    elsewhere: float | None
    """The part of the owner's VMs on other nodes. These report one number
    for all resources. 0 if the metric does not add it."""


class EarlierWeightsFields(TypedDict):
    """Weights at the end of a minute."""

    at: str
    """UTC in the form of ISO 8601, such as ``2026-11-22T01:20:00Z``."""
    weights: dict[ControlKey, float]
    """By control. As above."""


class ExplainedFields(TypedDict):
    """One VM."""

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
    """Name of that project; the id where it is not known."""
    summary: str
    """Two to four sentences: what the VM gets and wants, who else waits for
    it, what its owner's fair part is and whether they have it, what would
    change it. They are made from the same facts as the numbers. Of others
    they tell how many wait, nothing else."""
    entity: str
    """``user`` or ``project``: who its owner is, where shares are compared."""
    metric: str
    """In force."""
    policy: str
    """In force."""
    enforced: bool
    """Whether weights of this node reach the kernel; false while it is
    paused or only observes."""
    heaviness: HeavinessFields
    """In quotas: 1 is an owner's whole quota."""
    endowment: dict[ResourceKey, float]
    """The part of its node that the VM is entitled to. An amount."""
    quota: dict[ResourceKey, float]
    """The part of all known nodes that its owner is entitled to. An amount."""
    usage: dict[ResourceKey, float]
    """Use of the VM. An amount."""
    owner_usage: dict[ResourceKey, float]
    """Use of all VMs of its owner on all known nodes; compare it with
    ``quota``. An amount."""
    waiting: list[str]
    """Names of the resources for which the VM waits."""
    contended: list[str]
    """Names of the resources for which VMs compete on this node."""
    weights: dict[ControlKey, float]
    """By control. While a plugin is in quarantine, those of before, which
    stay in force. 1 is neutral, more is more service; of the policy
    ``thesis`` a place in a range, from 0 to 1."""
    weights_last_hour: list[EarlierWeightsFields]
    """Earlier weights, oldest first: one entry for each minute in which a
    weight changed by more than 1 %, with the weights at its end. At most
    61. They are set back when the VM arrives on this node, and when the
    agent starts."""
    advice: list[str]
    """The sentences of the summary one by one, and after them those of all
    else that the VM waits for. At least one."""


class InstanceFields(TypedDict):
    """Answer of ``get_instance``."""

    host: str
    """The node."""
    round: int
    """The round that this describes."""
    instance: ExplainedFields
    """The VM."""
