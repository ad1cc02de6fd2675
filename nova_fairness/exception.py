# SPDX-License-Identifier: Apache-2.0

"""Every error the package raises: one root per room.

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
"""Errors of code that reads content of others which has another form."""


class FairnessError(Exception):
    """Root of all errors of this package."""


class ConfigurationError(FairnessError):
    """An option has a value that cannot be used."""


class UnusableCertificate(ConfigurationError):
    """A file for TLS cannot be used; the message names option and file."""


class PluginError(FairnessError):
    """A metric, policy or order cannot be used."""


class UnknownPlugin(PluginError):
    """No such plugin is installed; the message lists those that are."""


class PluginMisbehaved(PluginError):
    """A plugin raised, ran too long or returned something unusable.

    :ivar plugin: its kind and name, such as ``order fair_tree``; empty where
        there is no other to use in its place.
    """

    plugin = ''


class PluginTooSlow(PluginMisbehaved):
    """A plugin exceeded its deadline."""


class CollectError(FairnessError):
    """The host could not be read."""


class HypervisorUnavailable(CollectError):
    """libvirt does not answer."""


class BadDomain(CollectError):
    """A domain's XML lacks what every VM must have."""


class ApplyError(FairnessError):
    """The host could not be written."""


class ControlUnavailable(ApplyError):
    """This host does not offer a control at all."""


class WriteRefused(ApplyError):
    """The kernel or the operating system refused one write."""


class GuestNotWritten(ApplyError):
    """A guest's agent did not write what it was asked to."""


class StateError(FairnessError):
    """Saved state cannot be read or written."""


class ExchangeError(FairnessError):
    """Peers could not be reached or sent something unusable."""


class ReportRefused(ExchangeError):
    """A message of a peer is not used.

    :param reason: one word out of a few, by which refusals are counted.
    :param message: what was wrong and what was expected.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class RpcError(FairnessError):
    """A call to an agent failed."""


class HostNotReached(RpcError):
    """An agent did not answer in time; it may still have done it."""


class BadArgument(RpcError):
    """An argument of a call cannot be used."""


class NotAllowed(RpcError):
    """The caller's role does not allow this call."""


class UnknownRequest(RpcError):
    """There is no such request."""


class UnknownPreemption(RpcError):
    """No server was to make room at that time."""


class UnknownAccount(RpcError):
    """There is no such account in the share tree."""


class Busy(RpcError):
    """Another caller's work of the same kind is not done yet."""


class AccountUnchecked(RpcError):
    """Keystone could not be asked whether there is such an account."""


class UnknownHost(RpcError):
    """There is no host of that name, or it may not move."""


class UnknownPlan(RpcError):
    """There is no such plan of moves."""


class UnknownGroup(RpcError):
    """There is no such group with a spending rate."""


class NotLeading(RpcError):
    """Another process acts; the text is the name of its host."""


class UnknownInstance(RpcError):
    """No such VM is on the node."""


class Superseded(RpcError):
    """A newer epoch of the desired state is known already."""


class LabError(FairnessError):
    """A laboratory scenario cannot be run."""


class BadScenario(LabError):
    """A scenario is wrong; the message says file, line, expectation."""


class LabEnvironmentError(LabError):
    """Something the laboratory needs is missing on this machine."""


class SolverFailed(FairnessError):
    """A linear or integer program has no solution, or none was found."""


class BadSeries(FairnessError):
    """Series of a run cannot be read again; the message names the file."""


class UnknownShare(FairnessError):
    """Nothing by that name can be made equal; names what can be."""


class SimError(FairnessError):
    """A simulation cannot be run, or its results not be written."""


class UnknownParameter(SimError):
    """A policy has no such number; the message lists those it has."""


class BadPluginName(SimError):
    """A new plugin cannot have the name; the message says why."""


class BadTrace(SimError):
    """A trace is wrong; the message says file, line, column, expectation."""


class ClusterError(FairnessError):
    """The cluster tier cannot go on with what it was given."""


class IllegalStep(ClusterError):
    """The state of an object allows no step for this event."""


class NoRoom(IllegalStep):
    """A request would start where there is no room for it."""


class BadPartition(ClusterError):
    """Hosts between batch and cloud were described in a way that cannot be."""


class BadReason(ClusterError):
    """A reason was given numbers that are not its own."""


class BadSnapshot(ClusterError):
    """Parts of a snapshot of the cloud do not fit together."""


class BadShares(ClusterError):
    """Accounts do not form a share tree, or a share is no share."""


class BadLedger(ClusterError):
    """Use that was told, or how it decays, makes no sense."""


class BatchError(ClusterError):
    """The batch system did not do what it was asked for."""


class BatchAway(BatchError):
    """The batch system gives no answer."""


class BatchUnreadable(BatchError):
    """An answer of the batch system is not of the form that is read here."""


class BatchRefused(BatchError):
    """The batch system has no such host, or leaves it as it is."""


class ClocksDisagree(ClusterError):
    """The time may be wrong: nothing irreversible is done."""


class CloudError(ClusterError):
    """Nova or Placement did not do what it was asked for."""


class CloudAway(CloudError):
    """Nova, Placement or Keystone gives no answer that can be read."""


class CloudFailed(CloudAway):
    """Nova or Placement answers one call with 500; others it may do."""


class CloudUnreadable(CloudAway):
    """An answer is there, and one part of it is not what it should be."""


class CloudRefused(CloudError):
    """Nova, Placement or Keystone refused what it was asked for.

    :ivar said: the service's own words; '' if they cannot be read.
    """

    def __init__(self, message: str, said: str = '') -> None:
        super().__init__(message)
        self.said = said


class StoreError(ClusterError):
    """The store of requests did not do what it was asked for."""


class StoreAway(StoreError):
    """The database does not answer; the request may be done or not."""


class SchemaMismatch(StoreError):
    """The tables are not those that this version works with."""


class Outdated(StoreError):
    """The request is no longer as it was when this was decided."""


class Deposed(StoreError):
    """Another process leads now: this one writes nothing."""


class SealBroken(StoreError):
    """A stored message cannot be opened with any of the keys."""


class BadKeyFile(StoreError):
    """The file of keys cannot be used."""


class RelayError(ClusterError):
    """The relay cannot do its work."""


class Unreadable(RelayError):
    """A message is not of the form that Nova's messages have."""


class BrokerAway(RelayError):
    """The broker does not answer; the last message may be there or not."""


class NoListener(BrokerAway):
    """No queue takes the sent message, so the message is lost."""


class StillUsed(RelayError):
    """A queue to be removed holds messages or has a consumer."""


class StillWaiting(ClusterError):
    """Requests wait or are in doubt that were to be started."""


class DeclaredOtherwise(BrokerAway):
    """The broker has an exchange or a queue that was declared otherwise."""
