# SPDX-License-Identifier: Apache-2.0

"""Every command of README, of installing and of the queue is typed.

The tests that type them read them from the pages, as they are written.
"""

import re

import pytest

from tests.fixtures import minimal_debian

TOP = minimal_debian.TOP
OF_QUEUE = TOP / 'doc/source/admin/queue.rst'
"""What it shows without a prompt are pictures and files."""

PAGES = (
    minimal_debian.README,
    *map(
        minimal_debian.guide,
        (
            *('index', 'devstack', 'uninstall'),
            *('ansible', 'containers'),
        ),
    ),
    OF_QUEUE,
)
CONTAINERS = 'functional/test_containers.py'
DEBIAN = 'functional/test_minimal_debian.py'
GUESTS = 'functional/test_minimal_debian_lab.py'
SERVICES = 'functional/test_services.py'
SCENARIOS = 'functional/test_lab_scenarios.py'
NOVA = 'integration/nova'
QUEUE = 'integration/relay/test_processes.py'
COMMANDS = 'unit/cmd/test_cluster.py'
CLIENT = 'unit/client/test_with_interface.py'

TYPED = {
    r'\./tools/deb\.sh --out .*': 'functional/conftest.py::packages',
    r'ansible-playbook .*': 'functional/test_ansible.py::'
    'the_example_playbook_is_valid',
    r'apt-get install \./build/.*': f'{DEBIAN}::the_package_replaces',
    r'apt-get install .*': f'{DEBIAN}::node',
    r'apt-get purge nova-fairness': f'{DEBIAN}::the_package_replaces',
    r'apt-get purge nova-fairness-dashboard': 'functional/test_packages.py::'
    'the_horizon_of_debian_has_the_pages',
    r'apt-get purge nova-fairness-cluster.*': f'{SERVICES}::a_purge_leaves',
    r'chgrp .*': f'{DEBIAN}::the_guide_starts_it',
    r'curl .*': f'{GUESTS}::shells_inside',
    r'install -D .*': f'{SERVICES}::of_nova',
    r'journalctl .*': f'{SERVICES}::a_reload_is_taken_over',
    r'podman build .*': f'{CONTAINERS}::images',
    r'podman run -d --name nova-fairness-agent .*': f'{CONTAINERS}::the_agent',
    r'podman stop .*': f'{CONTAINERS}::a_stop',
    r'podman run --rm --privileged .*': f'{CONTAINERS}::a_killed',
    r'podman run .*': f'{CONTAINERS}::the_relay',
    r'ln -s .*': f'{DEBIAN}::the_guide_starts_it',
    r'mkdir -p .*': f'{DEBIAN}::node',
    r'(/opt/\S+/)?nova-fairness restore .*': f'{DEBIAN}::the_package_replaces',
    r'/opt/\S+/nova-fairness .*': f'{DEBIAN}::agent',
    r'nova-fairness withdraw .*': f'{NOVA}/test_service.py::a_node_is_taken',
    r'nova-fairness-ctl .*controller\.conf': 'integration/test_devstack.py::'
    'the_page_shows_each_command',
    r'nova-fairness-ctl .*': f'{DEBIAN}::the_guide_makes_keys',
    r'nova-fairness-keys .*': f'{DEBIAN}::the_guide_makes_keys',
    r'nova-fairness-sim .*': f'{DEBIAN}::the_guide_installs_it_with_nova',
    r'nova-fairness-status --config-file .*': 'integration/test_devstack.py::'
    'the_page_shows_each_command',
    r'nova-fairness-status --controller .*': f'{DEBIAN}::the_filter_goes',
    r'nova-fairness-status .*': f'{DEBIAN}::the_package_replaces',
    r'nova-fairness-cluster drain': 'integration/cluster/test_taking_out.py::'
    'all_that_waits_is_started',
    r'nova-fairness-cluster withdraw': 'unit/cmd/test_withdrawal.py::'
    'hosts_are_opened',
    r'nova-fairness-cluster (new-key|reseal)': f'{COMMANDS}::keys_are_changed',
    r'nova-fairness-cluster upgrade': f'{COMMANDS}::tables_are_upgraded',
    r'nova-fairness-relay declare': f'{QUEUE}::all_is_declared',
    r'nova-fairness-relay remove': f'{QUEUE}::nothing_is_left',
    r'openstack fairness capacity show': f'{CLIENT}::the_room_there_is',
    r'openstack fairness limit .*': f'{CLIENT}::limits_are_seen_set',
    r'openstack fairness order preview .*': f'{CLIENT}::an_order_is_previewed',
    r'openstack fairness request (list|show) .*': f'{NOVA}/test_queue.py::'
    'users_read_why_they_wait',
    r'openstack fairness request (cancel|release) .*': f'{CLIENT}::'
    'requests_are_taken_back',
    r'openstack fairness request (first|hold|unhold) .*': f'{CLIENT}::'
    'requests_are_held_and_put_first',
    r'openstack fairness request extend .*': f'{CLIENT}::a_request_runs',
    r'openstack fairness share list .*': f'{CLIENT}::the_shares_there_are',
    r'openstack fairness share .*': f'{CLIENT}::a_share_is_set',
    r'runuser -u nova-fairness .*': f'{SERVICES}::queue',
    r'openstack compute service list .*': f'{NOVA}/test_service.py::'
    'the_command_line_lists',
    r'openstack compute service delete .*': f'{NOVA}/test_service.py::'
    'the_row_of_a_node',
    r'/opt/\S+/pip install \.': f'{DEBIAN}::node',
    r'/opt/\S+/pip install .*': f'{DEBIAN}::the_guide_installs_it_with_nova',
    r'pip (un)?install .*': f'{DEBIAN}::the_filter_goes',
    r'python3 -m venv .*': f'{DEBIAN}::node',
    r'rm .*': f'{DEBIAN}::the_package_replaces',
    r'systemctl (enable|start) .*': f'{SERVICES}::the_agent_steers',
    r'systemctl daemon-reload': f'{SERVICES}::of_nova',
    r'systemctl restart .*': f'{SERVICES}::a_restart_restores',
    r'systemctl disable .*': f'{SERVICES}::a_purge_leaves',
    r'\./tools/deb\.sh': f'{DEBIAN}::built',
    r'\./tools/deb\.sh --extras .*': f'{DEBIAN}::a_package_without_nova',
    r'\./tools/lab\.sh': f'{GUESTS}::one_line_shows',
    r'\./tools/lab\.sh .*': f'{SCENARIOS}::a_whole_scenario',
    r'\./tools/nova\.sh( --queue)?': f'{GUESTS}::cloud',
    r'\./tools/nova\.sh shell.*': f'{GUESTS}::shells_inside',
    r'\./tools/nova\.sh run .*': f'{GUESTS}::a_waiting_server_is_listed',
}
"""What types a command, by a pattern of it; the first that fits."""

NOT_TYPED = {'./tools/test.sh': 'it runs this test'}


def shown():
    found = []
    for path in PAGES:
        text = path.read_text('utf-8').replace('\\\n', ' ')
        found += re.findall(r'^ +[#$] (.+)$', text, re.MULTILINE)
        blocks = re.findall(r'::\n\n((?: {3,}.+\n)+)', text)
        for block in () if path == OF_QUEUE else blocks:
            found += [line.strip() for line in block.splitlines()]
    return sorted({*found} - NOT_TYPED.keys())


@pytest.mark.parametrize('command', shown())
def test_a_test_types_each_command(command):
    fitting = [
        where
        for pattern, where in TYPED.items()
        if re.fullmatch(pattern, command)
    ]
    assert fitting, command
    path, _, name = fitting[0].partition('::')
    text = (TOP / 'tests' / path).read_text('utf-8')
    assert re.search(rf'^def (test_)?{name}', text, re.MULTILINE), fitting[0]


SECTION = re.compile(
    r"(?:blocks|commands|example|section)\(\s*(README|GUIDE|UNINSTALL),"
    r"\s*'([^']+)'"
)

GUIDE = re.compile(r"(\w+) = minimal_debian\.guide\('(\w+)'\)")


def sections():
    """Pages and titles of sections that tests on the smallest Debian read."""
    for path in sorted((TOP / 'tests/functional').glob('test_*.py')):
        text = path.read_text('utf-8')
        pages = dict(GUIDE.findall(text))
        for name, title in SECTION.findall(text):
            if name == 'README' or name in pages:
                yield pages.get(name, name), title


@pytest.mark.parametrize(('page', 'title'), sorted(set(sections())))
def test_each_section_that_tests_type_is_there(page, title):
    path = (
        minimal_debian.README
        if page == 'README'
        else minimal_debian.guide(page)
    )
    assert minimal_debian.section_text(path, title)


@pytest.mark.parametrize('pattern', TYPED)
def test_the_list_of_typed_commands_has_no_outdated_entry(pattern):
    assert any(re.fullmatch(pattern, command) for command in shown())
