# SPDX-License-Identifier: Apache-2.0

"""Running domains and the processes that run them."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import logging
import pathlib

from nova_fairness import exception
from nova_fairness.collect import hypervisor
from nova_fairness.collect import parse
from nova_fairness.collect import processes
from nova_fairness.model import instance
from nova_fairness.model import wording

LOG = logging.getLogger(__name__)

Incarnations = Mapping[str, instance.Incarnation]
"""Incarnations by UUID."""

Describe = Callable[[str], instance.Description | None]
"""The cloud's facts of a VM, by UUID; never blocks."""


def nothing_known(_uuid: str) -> instance.Description | None:
    """Know nothing of any VM."""
    return None


class Roster:
    """Turns domains into incarnations and remembers what it has parsed.

    :param owners: (user, project) by UUID or domain name.
    :param run: directory into which libvirt writes ``DOMAIN.pid``.
    :param proc: where the process file system is mounted.
    :param describe: asked about VMs that then still have no owner.
    """

    def __init__(
        self,
        owners: Mapping[str, tuple[str, str]],
        run: pathlib.Path,
        proc: pathlib.Path,
        describe: Describe = nothing_known,
    ) -> None:
        self._owners = dict(owners)
        self._describe = describe
        self._run, self._proc = run, proc
        self._known: dict[str, instance.Incarnation] = {}
        self._outdated: set[str] = set()
        self._complaints: dict[str, tuple[str, int]] = {}
        self._unseen: dict[str, str] = {}

    @property
    def problem(self) -> str:
        """Why running VMs could not be looked at; empty if none was."""
        if not self._unseen:
            return ''
        why = '; '.join(sorted(set(self._unseen.values())))
        count = wording.counted(len(self._unseen), 'VM')
        return f'{count} cannot be looked at: {why}'

    def outdate(self, uuid: str) -> None:
        """Read the XML of a domain again at the next refresh."""
        self._outdated.add(uuid)

    def outdate_all(self) -> None:
        """Read all XML again: changes may have been missed."""
        self._outdated.update(self._known)

    def living(self) -> Incarnations:
        """Forget the VMs whose process has ended."""
        self._keep(self._is_alive)
        return dict(self._known)

    def refresh(
        self, domains: tuple[hypervisor.ActiveDomain, ...]
    ) -> Iterator[Incarnations]:
        """Take the list of running domains in.

        :returns: first the VMs known before, then all after each VM that had
            to be asked for, because libvirt may hang at any of them.
        """
        names = {domain.uuid for domain in domains}
        self._keep(lambda vm: vm.instance.uuid in names and self._is_alive(vm))
        self._forget_complaints(names)
        self._outdated &= names
        self._unseen = {}
        new = []
        for domain in domains:
            if domain.uuid in self._known:
                self._note_state(domain)
            if self._must_ask(domain.uuid):
                new.append(domain)
        yield dict(self._known)
        for domain in new:
            self._ask(domain)
            yield dict(self._known)

    def _is_alive(self, vm: instance.Incarnation) -> bool:
        try:
            started = processes.start_ticks(self._proc, vm.pid)
        except OSError:
            # Whoever cannot look has not seen that it ended.
            return True
        return started == vm.start_ticks

    def _keep(self, wanted: Callable[[instance.Incarnation], bool]) -> None:
        self._known = {
            uuid: vm for uuid, vm in self._known.items() if wanted(vm)
        }

    def _note_state(self, domain: hypervisor.ActiveDomain) -> None:
        vm = self._known[domain.uuid]
        if vm.paused != domain.paused:
            self._known[domain.uuid] = dataclasses.replace(
                vm, paused=domain.paused
            )

    def _must_ask(self, uuid: str) -> bool:
        return uuid not in self._known or uuid in self._outdated

    def _ask(self, domain: hypervisor.ActiveDomain) -> None:
        try:
            vm = self._identify(domain)
        except OSError as error:
            self._unseen[domain.uuid] = str(error.strerror)
            return
        except exception.CollectError as error:
            self._complain(domain.uuid, str(error))
            return
        except Exception as error:
            # One odd domain must not hide those that come after it.
            LOG.debug('domain %s', domain.uuid, exc_info=True)
            self._complain(domain.uuid, f'unexpected error: {error!r}')
            return
        self._outdated.discard(domain.uuid)
        self._complaints.pop(domain.uuid, None)
        self._known[domain.uuid] = vm

    def _identify(
        self, domain: hypervisor.ActiveDomain
    ) -> instance.Incarnation:
        """Find a domain's process and read its XML.

        :raises CollectError: if it has no process or no XML.
        :raises OSError: if that cannot be known, for want of descriptors say.
        """
        pid = processes.find_pid(
            self._proc, self._run, domain.name, domain.uuid
        )
        started = (
            None if pid is None else processes.start_ticks(self._proc, pid)
        )
        if pid is None or started is None:
            raise exception.CollectError(
                f'no process of domain {domain.name} ({domain.uuid}) found:'
                f' neither {self._run}/{domain.name}.pid nor {self._proc}'
                ' names one'
            )
        vm = parse.with_owner(
            parse.parse_domain(domain.read_xml()), self._owners
        )
        if vm.user_id == instance.UNOWNED:
            known = self._describe(vm.uuid)
            vm = vm if known is None else parse.described(vm, known)
        return instance.Incarnation(vm, pid, started, domain.paused)

    def _complain(self, uuid: str, problem: str) -> None:
        """Log a problem of one domain when it is seen for the second time.

        A domain is listed while it is still being started or ended.
        """
        seen = self._complaints.get(uuid)
        if seen is None or seen[0] != problem:
            self._complaints[uuid] = (problem, 1)
        else:
            if seen[1] == 1:
                LOG.warning('domain %s is left out: %s', uuid, problem)
            self._complaints[uuid] = (problem, 2)

    def _forget_complaints(self, present: set[str]) -> None:
        for uuid in self._complaints.keys() - present:
            del self._complaints[uuid]
