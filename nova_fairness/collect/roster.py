# SPDX-License-Identifier: Apache-2.0

"""Reads running domains and their processes."""

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
"""Returns the cloud's facts of a VM by UUID, if known; never blocks."""


def no_description(_uuid: str) -> instance.Description | None:
    """Return no description of any VM."""
    return None


class DomainReader:
    """Converts domains to incarnations, and stores the parsed ones.

    :param owners: (user, project) by UUID or domain name.
    :param run: directory in which libvirt writes ``DOMAIN.pid``.
    :param proc: where procfs is mounted.
    :param describe: returns the facts of VMs that have no owner otherwise.
    """

    def __init__(
        self,
        owners: Mapping[str, tuple[str, str]],
        run: pathlib.Path,
        proc: pathlib.Path,
        describe: Describe = no_description,
    ) -> None:
        self._owners = dict(owners)
        self._describe = describe
        self._run, self._proc = run, proc
        self._known: dict[str, instance.Incarnation] = {}
        self._outdated: set[str] = set()
        self._domain_errors: dict[str, tuple[str, int]] = {}
        self._unreadable: dict[str, str] = {}

    @property
    def problem(self) -> str:
        """Why running VMs could not be read; empty if all could."""
        if not self._unreadable:
            return ''
        why = '; '.join(sorted(set(self._unreadable.values())))
        count = wording.counted(len(self._unreadable), 'VM')
        return f'{count} cannot be read: {why}'

    def outdate(self, uuid: str) -> None:
        """Mark the XML of a domain to be read again at the next refresh."""
        self._outdated.add(uuid)

    def outdate_all(self) -> None:
        """Mark all XML to be read again, because events may be lost."""
        self._outdated.update(self._known)

    def running_only(self) -> Incarnations:
        """Delete VMs whose process ended; return the others."""
        self._retain(self._is_alive)
        return dict(self._known)

    def refresh(
        self, domains: tuple[hypervisor.ActiveDomain, ...]
    ) -> Iterator[Incarnations]:
        """Read the running domains.

        :returns: first the VMs known before, then all VMs after each new one,
            because libvirt may hang at any of them.
        """
        names = {domain.uuid for domain in domains}
        self._retain(
            lambda vm: vm.instance.uuid in names and self._is_alive(vm)
        )
        self._forget_errors(names)
        self._outdated &= names
        self._unreadable = {}
        new = []
        for domain in domains:
            if domain.uuid in self._known:
                self._update_paused(domain)
            if self._needs_reading(domain.uuid):
                new.append(domain)
        yield dict(self._known)
        for domain in new:
            self._read_domain(domain)
            yield dict(self._known)

    def _is_alive(self, vm: instance.Incarnation) -> bool:
        try:
            started = processes.start_ticks(self._proc, vm.pid)
        except OSError:
            # If it cannot be read, it may still be running.
            return True
        return started == vm.start_ticks

    def _retain(self, wanted: Callable[[instance.Incarnation], bool]) -> None:
        self._known = {
            uuid: vm for uuid, vm in self._known.items() if wanted(vm)
        }

    def _update_paused(self, domain: hypervisor.ActiveDomain) -> None:
        vm = self._known[domain.uuid]
        if vm.paused != domain.paused:
            self._known[domain.uuid] = dataclasses.replace(
                vm, paused=domain.paused
            )

    def _needs_reading(self, uuid: str) -> bool:
        return uuid not in self._known or uuid in self._outdated

    def _read_domain(self, domain: hypervisor.ActiveDomain) -> None:
        """Read one domain; store its incarnation or its error."""
        try:
            vm = self._identify(domain)
        except OSError as error:
            self._unreadable[domain.uuid] = str(error.strerror)
            return
        except exception.CollectError as error:
            self._report_error(domain.uuid, str(error))
            return
        except Exception as error:
            # One odd domain must not hide those that come after it.
            LOG.debug('domain %s', domain.uuid, exc_info=True)
            self._report_error(domain.uuid, f'unexpected error: {error!r}')
            return
        self._outdated.discard(domain.uuid)
        self._domain_errors.pop(domain.uuid, None)
        self._known[domain.uuid] = vm

    def _identify(
        self, domain: hypervisor.ActiveDomain
    ) -> instance.Incarnation:
        """Return the incarnation of a domain, from its process and XML.

        :raises CollectError: if it has no process or no XML.
        :raises OSError: if that is unknown, for example without free
            descriptors.
        """
        pid = processes.find_pid(
            self._proc, self._run, domain.name, domain.uuid
        )
        started = (
            None if pid is None else processes.start_ticks(self._proc, pid)
        )
        if pid is None or started is None:
            raise exception.CollectError(
                f'domain {domain.name} ({domain.uuid}): no process found:'
                f' neither {self._run}/{domain.name}.pid nor {self._proc}'
                ' names one'
            )
        vm = parse.with_owner(
            parse.parse_domain(domain.read_xml()), self._owners
        )
        if vm.user_id == instance.UNOWNED:
            known = self._describe(vm.uuid)
            vm = vm if known is None else parse.with_description(vm, known)
        return instance.Incarnation(vm, pid, started, domain.paused)

    def _report_error(self, uuid: str, problem: str) -> None:
        """Log an error of a domain at its second occurrence.

        A domain is listed while it is still starting or ending.
        """
        seen = self._domain_errors.get(uuid)
        if seen is None or seen[0] != problem:
            self._domain_errors[uuid] = (problem, 1)
        else:
            if seen[1] == 1:
                LOG.warning('domain %s: ignored: %s', uuid, problem)
            self._domain_errors[uuid] = (problem, 2)

    def _forget_errors(self, present: set[str]) -> None:
        for uuid in self._domain_errors.keys() - present:
            del self._domain_errors[uuid]
