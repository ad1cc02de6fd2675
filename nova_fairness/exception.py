# SPDX-License-Identifier: Apache-2.0

"""All errors that the package raises, with a base class per room.

A message names what was wrong and what was expected.
"""

UNREADABLE = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""Errors of code that reads foreign content of another form."""


class FairnessError(Exception):
    """Base class of all errors of this package."""


class ConfigurationError(FairnessError):
    """An option has an unusable value."""


class UnusableCertificate(ConfigurationError):
    """A file for TLS is unusable; the message names option and file."""


class PluginError(FairnessError):
    """A metric, policy or order is unusable."""


class UnknownPlugin(PluginError):
    """No such plugin is installed; the message lists the installed ones."""


class PluginMisbehaved(PluginError):
    """A plugin raised an error, ran too long or returned an unusable result.

    :ivar plugin: its kind and name, such as ``order fair_tree``; empty where
        no other plugin can replace it.
    """

    plugin = ''


class PluginTooSlow(PluginMisbehaved):
    """A plugin exceeded its deadline."""


class CollectError(FairnessError):
    """A reading of the host failed."""


class HypervisorUnavailable(CollectError):
    """libvirt does not answer."""


class BadDomain(CollectError):
    """A domain's XML lacks an element that every VM must have."""


class ApplyError(FairnessError):
    """A write to the host failed."""


class ControlUnavailable(ApplyError):
    """This host does not support a control."""


class WriteRefused(ApplyError):
    """The kernel or the operating system refused one write."""


class GuestFileNotWritten(ApplyError):
    """A guest's agent did not write a file."""


class StateError(FairnessError):
    """Saved state cannot be read or written."""


class ExchangeError(FairnessError):
    """Peers are not reachable or sent unusable content."""


class ReportRefused(ExchangeError):
    """A peer's message was refused.

    :param reason: one of a few words, by which refusals are counted.
    :param message: what was wrong and what was expected.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class RpcError(FairnessError):
    """A call to an agent failed."""


class HostNotReached(RpcError):
    """An agent did not answer in time; it may have executed the call."""


class BadArgument(RpcError):
    """An argument of a call is unusable."""


class NotAllowed(RpcError):
    """The caller's role does not allow this call."""


class UnknownRequest(RpcError):
    """No request has this identifier."""


class UnknownPreemption(RpcError):
    """No server was to be evicted at that time."""


class UnknownAccount(RpcError):
    """No account of the share tree has this name."""


class Busy(RpcError):
    """Work of the same kind for another caller is still in progress."""


class AccountUnchecked(RpcError):
    """Keystone did not answer whether an account exists."""


class UnknownHost(RpcError):
    """No host has this name, or the host may not move between batch and
    cloud.
    """


class UnknownPlan(RpcError):
    """No migration plan has this identifier."""


class UnknownGroup(RpcError):
    """No group with a spending rate has this name."""


class NotLeading(RpcError):
    """Another process is the leader; the text is the name of its host."""


class UnknownInstance(RpcError):
    """No such VM exists on the node."""


class Superseded(RpcError):
    """A newer epoch of the desired state exists."""


class LabError(FairnessError):
    """A laboratory scenario cannot be run."""


class BadScenario(LabError):
    """A scenario is invalid; the message names file, line and expectation."""


class LabEnvironmentError(LabError):
    """A program or file that the laboratory needs is missing on this
    machine.
    """


class SolverFailed(FairnessError):
    """A linear or integer program has no solution, or none was found."""


class BadSeries(FairnessError):
    """The recorded series of a run are unreadable; the message names the
    file.
    """


class UnknownShare(FairnessError):
    """No quantity of this name can be made equal; the message lists the
    names.
    """


class SimError(FairnessError):
    """A simulation cannot be run, or its results cannot be written."""


class UnknownParameter(SimError):
    """A policy has no such parameter; the message lists its parameters."""


class BadPluginName(SimError):
    """A new plugin cannot have the name; the message says why."""


class BadTrace(SimError):
    """A trace is invalid; the message names file, line, column and
    expectation.
    """


class ClusterError(FairnessError):
    """Base class of errors of the cluster service."""


class IllegalStep(ClusterError):
    """An event does not match the state of an object."""


class NoRoom(IllegalStep):
    """A request would start on hosts without room for it."""


class BadPartition(ClusterError):
    """The description of hosts between batch and cloud is contradictory."""


class BadReason(ClusterError):
    """The numbers of a reason are not those that its text needs."""


class BadSnapshot(ClusterError):
    """Parts of a snapshot of the cloud contradict each other."""


class BadShares(ClusterError):
    """Accounts do not form a share tree, or a share is invalid."""


class BadLedger(ClusterError):
    """Reported use, or its half-life, is invalid."""


class BatchError(ClusterError):
    """The batch system did not execute an order."""


class BatchAway(BatchError):
    """The batch system does not answer."""


class BatchUnreadable(BatchError):
    """An answer of the batch system has an unknown form."""


class BatchRefused(BatchError):
    """The batch system has no such host, or refused to change it."""


class ClocksDisagree(ClusterError):
    """The clocks disagree, so that irreversible steps are not taken."""


class CloudError(ClusterError):
    """Nova or Placement did not execute an order."""


class CloudAway(CloudError):
    """Nova, Placement or Keystone gave no readable answer."""


class CloudFailed(CloudAway):
    """Nova or Placement answered one call with status 500; other calls
    may work.
    """


class CloudUnreadable(CloudAway):
    """A part of a cloud service's answer has an unknown form."""


class CloudRefused(CloudError):
    """Nova, Placement or Keystone refused a call.

    :ivar said: the message of the service; empty if it is unreadable.
    """

    def __init__(self, message: str, said: str = '') -> None:
        super().__init__(message)
        self.said = said


class StoreError(ClusterError):
    """The store of requests did not execute an operation."""


class StoreAway(StoreError):
    """The database does not answer; it is unknown whether it executed the
    operation.
    """


class SchemaMismatch(StoreError):
    """The database has the tables of another version."""


class Outdated(StoreError):
    """A request changed since a decision about it."""


class Deposed(StoreError):
    """Another process is the leader; this one must not write."""


class SealBroken(StoreError):
    """None of the keys opens a stored message."""


class BadKeyFile(StoreError):
    """The file of keys is unusable."""


class RelayError(ClusterError):
    """The relay cannot work."""


class Unreadable(RelayError):
    """A message does not have the form of Nova's messages."""


class BrokerAway(RelayError):
    """The broker does not answer; it is unknown whether it has the last
    message.
    """


class NoListener(BrokerAway):
    """No queue received a sent message, so the message is lost."""


class StillUsed(RelayError):
    """A queue to be deleted has messages or a consumer."""


class StillWaiting(ClusterError):
    """Requests are waiting or in doubt that should have been started."""


class DeclaredOtherwise(BrokerAway):
    """The broker has an exchange or a queue with other properties."""
