# SPDX-License-Identifier: Apache-2.0

"""The list of VMs, kept by libvirt's own test driver inside this process.

Its domains have no process, so the process file system is made of files.
"""

import logging
import threading

import libvirt
import pytest

from nova_fairness import exception
from nova_fairness.collect import hypervisor
from nova_fairness.collect import inventory
from nova_fairness.model import instance
from tests.fixtures.patience import wait_for_value
from tests.unit.collect import fake_kernel

URI = 'test:///default'
XML = """<domain type='test'><name>{name}</name><uuid>{uuid}</uuid>
<memory>65536</memory><vcpu>1</vcpu><os><type>hvm</type></os></domain>"""
ONE, TWO = fake_kernel.UUID.format(1), fake_kernel.UUID.format(2)


@pytest.fixture
def kernel(tmp_path):
    return fake_kernel.FakeKernel(tmp_path)


@pytest.fixture
def driver():
    hypervisor._start_event_loop()
    connection = libvirt.open(URI)
    for domain in connection.listAllDomains(0):
        if domain.isActive():
            domain.destroy()
    yield connection
    for domain in connection.listAllDomains(
        libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE
    ):
        domain.destroy()
    connection.close()


@pytest.fixture
def follow(kernel):
    started = []

    def start(uri=URI, interval_s=3600, **options):
        found = inventory.VmInventory(
            uri,
            interval_s,
            run=str(kernel.root / 'run'),
            proc=str(kernel.proc),
            **options,
        )
        started.append(found)
        found.start()
        return found

    yield start
    for found in started:
        found.stop()


def begin(driver, kernel, name, uuid, pid, start=1000):
    kernel.add_process(pid, start, uuid=uuid)
    kernel.write(kernel.root / 'run' / f'{name}.pid', f'{pid}')
    return driver.createXML(XML.format(name=name, uuid=uuid), 0)


def names(found):
    return [vm.instance.domain_name for vm in found.incarnations()]


def test_domains_that_run_already_are_found(driver, kernel, follow):
    begin(driver, kernel, 'b', TWO, 22)
    begin(driver, kernel, 'a', ONE, 11)
    found = follow()
    assert found.wait_ready(30)
    assert names(found) == ['a', 'b']
    assert [vm.key for vm in found.incarnations()] == [
        f'{ONE}/11/1000',
        f'{TWO}/22/1000',
    ]
    assert found.problem == ''


def test_libvirt_events_report_start_pause_resume_and_stop(
    driver, kernel, follow
):
    found = follow()
    assert found.wait_ready(30)
    assert found.incarnations() == ()
    domain = begin(driver, kernel, 'a', ONE, 11)
    assert wait_for_value(lambda: names(found) == ['a'])
    domain.suspend()
    assert wait_for_value(lambda: found.incarnations()[0].paused)
    domain.resume()
    assert wait_for_value(lambda: not found.incarnations()[0].paused)
    domain.destroy()
    assert wait_for_value(lambda: found.incarnations() == ())


def test_a_restart_is_another_incarnation(driver, kernel, follow):
    domain = begin(driver, kernel, 'a', ONE, 11)
    found = follow()
    assert found.wait_ready(30)
    kernel.end_process(11)
    domain.destroy()
    begin(driver, kernel, 'a', ONE, 12, start=2000)
    assert wait_for_value(
        lambda: [vm.key for vm in found.incarnations()] == [f'{ONE}/12/2000']
    )


def test_reconciliation_finds_changes_without_events(driver, kernel, follow):
    found = follow(interval_s=0.05)
    assert found.wait_ready(30)
    driver.createXML(XML.format(name='a', uuid=ONE), 0)
    kernel.add_process(11, uuid=ONE)  # its process is visible only now
    assert wait_for_value(lambda: names(found) == ['a'])


def test_a_process_is_found_without_a_pid_file(driver, kernel, follow):
    kernel.add_process(7, uuid=TWO)
    kernel.add_process(11, uuid=ONE)
    driver.createXML(XML.format(name='a', uuid=ONE), 0)
    found = follow()
    assert found.wait_ready(30)
    assert [vm.pid for vm in found.incarnations()] == [11]


def test_a_pid_file_that_names_another_process_is_not_believed(
    driver, kernel, follow
):
    begin(driver, kernel, 'a', ONE, 11)
    kernel.add_process(7, uuid=TWO)
    kernel.write(kernel.root / 'run' / 'a.pid', '7')
    found = follow()
    assert found.wait_ready(30)
    assert [vm.pid for vm in found.incarnations()] == [11]


def test_a_domain_without_a_process_is_left_out_and_said_once(
    driver, kernel, follow, caplog
):
    driver.createXML(XML.format(name='a', uuid=ONE), 0)
    begin(driver, kernel, 'b', TWO, 22)
    with caplog.at_level(logging.WARNING):
        found = follow(interval_s=0.01)
        assert found.wait_ready(30)
        assert wait_for_value(lambda: 'ignored' in caplog.text)
        other = begin(driver, kernel, 'c', fake_kernel.UUID.format(3), 33)
        assert wait_for_value(lambda: names(found) == ['b', 'c'])
        other.destroy()
        assert wait_for_value(lambda: names(found) == ['b'])
    assert caplog.text.count(': ignored: ') == 1
    assert f'domain {ONE}: ignored: domain a' in caplog.text


def test_the_operators_owner_is_applied(driver, kernel, follow):
    begin(driver, kernel, 'a', ONE, 11)
    found = follow(owners={'a': ('bob', 'chemistry')})
    assert found.wait_ready(30)
    assert found.incarnations()[0].instance.user_id == 'bob'


def test_the_cloud_is_asked_about_a_vm_without_owner_until_it_knows(
    driver, kernel, follow
):
    begin(driver, kernel, 'a', ONE, 11)
    known = {}
    found = follow(describe=known.get)
    assert found.wait_ready(30)
    assert found.incarnations()[0].instance.user_id == instance.UNOWNED
    known[ONE] = instance.Description(
        'bob', 'chemistry', 'web', 'small', {'quota:cpu_shares': '7'}, 2**27
    )
    found.look_again(ONE)
    assert wait_for_value(
        lambda: found.incarnations()[0].instance.user_id == 'bob'
    )
    vm = found.incarnations()[0].instance
    assert (vm.project_id, vm.display_name) == ('chemistry', 'web')
    assert (vm.flavor, vm.memory_bytes) == ('small', 2**27)
    assert vm.extra_specs == {'quota:cpu_shares': '7'}


def test_the_cloud_is_not_asked_about_a_vm_with_an_owner(
    driver, kernel, follow
):
    begin(driver, kernel, 'a', ONE, 11)
    asked = []
    found = follow(owners={'a': ('bob', 'chemistry')}, describe=asked.append)
    assert found.wait_ready(30)
    assert asked == []


def test_libvirt_that_is_not_there_is_a_problem_and_no_error(follow, tmp_path):
    found = follow(uri=f'qemu+unix:///system?socket={tmp_path}/none')
    assert wait_for_value(lambda: 'does not answer' in found.problem)
    assert not found.wait_ready(0)
    assert found.incarnations() == ()


def asked_at(*times_s):
    """Problem at each time, with a libvirt that never answers."""
    now = [0.0]
    found = inventory.VmInventory(URI, 60, clock=lambda: now[0])
    seen = []
    for now[0] in times_s:
        seen.append(found.problem)
    return seen


def test_silence_of_libvirt_becomes_a_problem():
    seen = asked_at(10, 20, 30, 40, 50, 60, 70, 75)
    assert seen == [*[''] * 7, f'libvirt at {URI}: no answer for 75 s']


def test_silence_is_noticed_though_rounds_are_long():
    seen = asked_at(100, 200, 300)
    assert 'no answer' in seen[-1]


def test_a_suspended_agent_does_not_blame_libvirt():
    assert asked_at(10, 20, 30, 148, 158) == [''] * 5
    assert 'no answer' in asked_at(10, 20, 30, 148, 158, 168, 178, 188)[-1]


def test_start_and_stop_may_be_repeated(driver, kernel, follow):
    found = follow()
    found.start()
    found.stop()
    found.stop()
    begin(driver, kernel, 'a', ONE, 11)
    found.start()
    assert wait_for_value(lambda: names(found) == ['a'])


class FakeLibvirt:
    """A connection that can be lost, hang and come back.

    The test driver lives inside the process and does none of these.
    """

    def __init__(self):
        self.domains = ()
        self.answers = True
        self.opened = 0

    def open(self, uri, changed):
        self.changed = changed
        self.opened += 1
        self.list_running()
        return self

    def list_running(self):
        if not self.answers:
            raise exception.HypervisorUnavailable(
                'libvirt does not answer: gone'
            )
        return self.domains

    def close(self):
        pass


@pytest.fixture
def fake_libvirt(monkeypatch):
    fake = FakeLibvirt()
    monkeypatch.setattr(hypervisor, 'Hypervisor', fake.open)
    monkeypatch.setattr(inventory, '_FIRST_RETRY_S', 0.01)
    return fake


def active(name, uuid, read_xml=None):
    xml = XML.format(name=name, uuid=uuid)
    return hypervisor.ActiveDomain(
        uuid, name, False, read_xml or (lambda: xml)
    )


def test_vms_whose_process_lives_stay_while_libvirt_is_away(
    fake_libvirt, kernel, follow, caplog
):
    kernel.add_process(11, uuid=ONE)
    kernel.add_process(22, uuid=TWO)
    fake_libvirt.domains = (active('a', ONE), active('b', TWO))
    with caplog.at_level(logging.INFO):
        found = follow()
        assert found.wait_ready(30)
        fake_libvirt.answers = False
        (kernel.proc / '22' / 'stat').unlink()
        fake_libvirt.changed(None)
        assert wait_for_value(lambda: names(found) == ['a'])
        assert 'does not answer' in found.problem
        fake_libvirt.answers = True
        assert wait_for_value(lambda: found.problem == '')
    assert caplog.text.count('the last list of VMs stays in use') == 1
    assert caplog.text.count('is current again') == 1


def test_without_descriptors_no_vm_is_taken_for_ended(
    fake_libvirt, kernel, follow
):
    kernel.add_process(11, uuid=ONE)
    kernel.add_process(22, uuid=TWO)
    fake_libvirt.domains = (active('a', ONE),)
    found = follow()
    assert found.wait_ready(30)
    with fake_kernel.no_descriptors():
        fake_libvirt.domains = (active('a', ONE), active('b', TWO))
        fake_libvirt.changed(ONE)
        assert wait_for_value(lambda: 'Too many open files' in found.problem)
        assert names(found) == ['a']
        fake_libvirt.answers = False
        fake_libvirt.changed(None)
        assert wait_for_value(lambda: 'does not answer' in found.problem)
        assert wait_for_value(lambda: fake_libvirt.opened > 3)
        assert names(found) == ['a']
        fake_libvirt.answers = True
    # Nothing tells that descriptors are back: it looks again by itself.
    assert wait_for_value(lambda: names(found) == ['a', 'b'])
    assert wait_for_value(lambda: found.problem == '')


def test_a_call_that_hangs_does_not_hide_the_vms_known_before(
    fake_libvirt, kernel, follow
):
    entered, released = threading.Event(), threading.Event()

    def hang():
        entered.set()
        released.wait(30)
        raise exception.CollectError('gone')

    kernel.add_process(11, uuid=ONE)
    kernel.add_process(22, uuid=TWO)
    fake_libvirt.domains = (active('a', ONE),)
    found = follow()
    assert found.wait_ready(30)
    fake_libvirt.domains = (active('a', ONE), active('b', TWO, hang))
    fake_libvirt.changed(None)
    assert entered.wait(30)
    assert names(found) == ['a']
    released.set()


def test_xml_is_read_once_per_incarnation_and_when_a_device_changed(
    fake_libvirt, kernel, follow
):
    readings = []

    def read():
        readings.append(len(readings))
        return XML.format(name='a', uuid=ONE)

    kernel.add_process(11, uuid=ONE)
    fake_libvirt.domains = (active('a', ONE, read),)
    found = follow(interval_s=0.01)
    assert found.wait_ready(30)
    kernel.add_process(22, uuid=TWO)
    fake_libvirt.domains = (active('a', ONE, read), active('b', TWO))
    assert wait_for_value(lambda: names(found) == ['a', 'b'])
    assert readings == [0]
    fake_libvirt.changed(ONE)
    assert wait_for_value(lambda: readings == [0, 1])


def test_an_unexpected_error_costs_the_others_nothing(
    fake_libvirt, kernel, follow, caplog
):
    def explode():
        raise RuntimeError('boom')

    kernel.add_process(11, uuid=ONE)
    kernel.add_process(22, uuid=TWO)
    fake_libvirt.domains = (active('a', ONE, explode), active('b', TWO))
    with caplog.at_level(logging.WARNING):
        found = follow(interval_s=0.01)
        assert found.wait_ready(30)
        assert wait_for_value(lambda: 'boom' in caplog.text)
    assert names(found) == ['b']
    fake_libvirt.domains = (active('a', ONE), active('b', TWO))
    assert wait_for_value(lambda: names(found) == ['a', 'b'])


def test_the_inventory_outlives_an_unexpected_error(
    fake_libvirt, kernel, follow
):
    kernel.add_process(11, uuid=ONE)
    fake_libvirt.domains = (None,)
    found = follow()
    assert wait_for_value(lambda: 'unexpected error' in found.problem)
    fake_libvirt.domains = (active('a', ONE),)
    assert wait_for_value(lambda: names(found) == ['a'])
    assert found.problem == ''
