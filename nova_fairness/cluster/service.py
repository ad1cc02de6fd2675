# SPDX-License-Identifier: Apache-2.0

"""The loop of the cluster tier: snapshot, plan, execute."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import threading

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster import election as election_module
from nova_fairness.cluster import execute
from nova_fairness.cluster import intake
from nova_fairness.cluster import servers as servers_module
from nova_fairness.cluster import snapshot as snapshot_module
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request as request_model

LOG = logging.getLogger(__name__)

Planner = Callable[[cluster.ClusterSnapshot, float], cluster.Plan]

_S = request_model.State
_UNREADABLE = reason.Reason.UNREADABLE
_OPEN = frozenset(_S) - request_model.FINAL
_TOLD_AT_ONCE = 200
"""Reasons that are written in one cycle: with many that wait, who is told
how many are before it changes all the time."""


@dataclasses.dataclass(frozen=True)
class Rules:
    """What operators choose.

    :ivar longest_wait_s: after which a request expires; ``None`` for never.
    :ivar pass_unreadable: whether messages that cannot be read are sent at
        once, as without the queue; else they wait for an operator.
    """

    longest_wait_s: float | None = None
    pass_unreadable: bool = True


class Service:
    """One process of the cluster tier.

    :param store: of messages and requests.
    :param election: says whether this process acts.
    :param reader: of the cloud.
    :param executor: of plans.
    :param nova: where servers are looked at.
    :param plan: the planner.
    :param clock: seconds of the epoch.
    :param rules: what operators chose.
    """

    def __init__(
        self,
        store: store_module.Store,
        election: election_module.Election,
        reader: snapshot_module.Reader,
        executor: execute.Executor,
        nova: servers_module.Nova,
        plan: Planner,
        clock: Callable[[], float],
        rules: Rules,
    ) -> None:
        self._store = store
        self._election = election
        self._reader = reader
        self._executor = executor
        self._nova = nova
        self._plan = plan
        self._clock = clock
        self._rules = rules

    def run(self, stopped: threading.Event, interval_s: float) -> None:
        """Do a cycle every so many seconds until stopped."""
        while not stopped.is_set():
            try:
                self.cycle()
            except exception.Deposed as error:
                LOG.warning('another process leads: %s', error)
            except exception.ClusterError as error:
                LOG.warning('this cycle ends early: %s', error)
            stopped.wait(interval_s)

    def cycle(self) -> bool:
        """Look once, plan once, and do it.

        :returns: whether this process leads.
        :raises ClusterError: if something without which nothing can be done
            fails; nothing is lost.
        """
        epoch = self._election.lead()
        if epoch is None:
            return False
        now = self._clock()
        intake.take_in(self._store, now, self._rules.longest_wait_s)
        found = self._put_back(epoch)
        view = self._view(found, now)
        self._watch(found, view, epoch)
        planned = self._plan(view.snapshot, now)
        self._do(
            planned, {each.request.uuid: each for each in found}, view, epoch
        )
        return True

    def _put_back(self, epoch: int) -> list[records.Record]:
        """Let wait what was reserved and not sent; say what there is."""
        found = self._store.requests(_OPEN)
        left = [each for each in found if each.request.state is _S.RESERVED]
        for record in left:
            self._try(record, self._executor.put_back, record, epoch)
        return self._store.requests(_OPEN) if left else found

    def _view(
        self, found: list[records.Record], now: float
    ) -> snapshot_module.View:
        requests = [
            each.request
            for each in found
            if self._rules.pass_unreadable
            or each.why.reason is not _UNREADABLE
        ]
        return self._reader.read(requests, self._executor.given, now)

    def _watch(
        self,
        found: list[records.Record],
        view: snapshot_module.View,
        epoch: int,
    ) -> None:
        """See what became of what was sent, and who was deleted."""
        for record in found:
            request = record.request
            there = [
                view.servers[uuid]
                for uuid in request.servers
                if uuid in view.servers
            ]
            if request.state not in request_model.UNSENT:
                self._try(record, self._judge, record, there, epoch)
            elif (
                request.state is _S.HELD
                and not there
                and record.why.reason is not _UNREADABLE
            ):
                self._try(record, self._bury, record, epoch)

    def _judge(
        self,
        record: records.Record,
        there: list[servers_module.Server],
        epoch: int,
    ) -> None:
        if record.request.state is _S.SENDING:
            self._executor.forget_room(record.request)
        if not there:
            # The list may be old: a server that is gone is asked for.
            looked = [self._nova.server(u) for u in record.request.servers]
            there = [each for each in looked if each is not None]
        happened = execute.judged(record, there)
        if happened is None:
            return
        event, why = happened
        self._store.step(record.request, event, epoch, why, self._clock())
        if event is not request_model.Event.SENT:
            self._executor.given.pop(record.request.uuid, None)

    def _bury(self, record: records.Record, epoch: int) -> None:
        if not any(self._nova.server(u) for u in record.request.servers):
            self._executor.bury(record, epoch)

    def _do(
        self,
        planned: cluster.Plan,
        found: Mapping[str, records.Record],
        view: snapshot_module.View,
        epoch: int,
    ) -> None:
        blind = self._blind(found, view)
        for action in planned.actions:
            if blind and action.verb is cluster.Verb.START:
                continue
            record = found[action.request]
            self._try(
                record, self._executor.carry_out, action, record, view, epoch
            )
        news = [
            (found[uuid], each.why)
            for uuid, each in planned.waiting.items()
            if found[uuid].why != each.why
        ]
        # Another reason is news; another number of it can wait.
        news.sort(key=lambda pair: pair[0].why.reason is pair[1].reason)
        for record, why in news[:_TOLD_AT_ONCE]:
            self._try(record, self._store.tell, record.request, epoch, why)

    def _blind(
        self,
        found: Mapping[str, records.Record],
        view: snapshot_module.View,
    ) -> bool:
        """Whether something builds and nobody knows where: then all wait."""
        for uuid, record in found.items():
            if record.request.state not in (_S.SENDING, _S.STARTING):
                continue
            if uuid not in self._executor.given and not all(
                view.servers[each].is_settled
                for each in record.request.servers
                if each in view.servers
            ):
                LOG.info('request %s builds somewhere: others wait', uuid)
                return True
        return False

    def _try(
        self,
        record: records.Record,
        do: Callable[..., None],
        *arguments: object,
    ) -> None:
        """Do something for one request; its failure keeps no other back."""
        try:
            do(*arguments)
        except (
            exception.Deposed,
            exception.StoreAway,
            exception.BrokerAway,
        ):
            # The next one would fare no better.
            raise
        except exception.ClusterError as error:
            LOG.warning('request %s: %s', record.request.uuid, error)
