# SPDX-License-Identifier: Apache-2.0

"""The plugin of devstack and its page agree with what was seen there."""

import pathlib
import re
import subprocess

from packaging import requirements
import pytest

TOP = pathlib.Path(__file__).parents[3]
PAGE = TOP / 'doc/source/install/devstack.rst'
LIBRARY = TOP / 'devstack/lib/nova-fairness'
PINNED = '4.1.2'
"""oslo.service in the constraints of stable/2025.1."""


def function(name):
    """Text of a function of the plugin."""
    text = LIBRARY.read_text('utf-8')
    found = re.search(
        rf'^function {name} {{.*?^}}', text, re.MULTILINE | re.DOTALL
    )
    return found.group()


def run_script(script):
    done = subprocess.run(
        ['bash', '-eu', '-c', script], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_page_names_the_branch_whose_pins_are_too_old():
    text = (TOP / 'requirements.txt').read_text('utf-8')
    [line] = re.findall(r'^oslo\.service.*?(?= #)', text, re.MULTILINE)
    needed = requirements.Requirement(line).specifier
    said = ' '.join(PAGE.read_text('utf-8').split())
    assert not needed.contains(PINNED)
    assert 'stable/2025.1 pins a version of oslo.service that is too' in said
    assert 'for its branches stable/2026.1 and newer' in said


def test_the_check_of_the_queue_reads_the_files_that_the_plugin_writes():
    [command] = re.findall(
        r'nova-fairness-status .*--controller .*', PAGE.read_text('utf-8')
    )
    names = re.findall(r'/etc/nova-fairness/(\S+)', command)
    assert names == ['nova-fairness-cluster.conf', 'nova-front.conf']
    library = LIBRARY.read_text('utf-8')
    for name in names:
        assert f'=$FAIRNESS_CONF_DIR/{name}\n' in library


def test_nova_api_posts_no_notifications_to_a_queue_of_another_kind():
    script = f'''
        FAIRNESS_FRONT_CONF=front NOVA_UWSGI_CONF=uwsgi NOVA_CONF=nova
        _fairness_private() {{ :; }}
        _fairness_nova_api_files() {{ :; }}
        iniset() {{ echo "$*"; }}
        {function('_fairness_switch_nova_api')}
        _fairness_switch_nova_api
    '''
    told = run_script(script)
    assert 'front oslo_messaging_notifications driver noop' in told
    assert 'front oslo_messaging_rabbit amqp_durable_queues True' in told


@pytest.mark.parametrize('there', [True, False])
def test_redis_of_the_package_runs_on_only_where_it_was_before(there):
    script = f'''
        is_service_enabled() {{ :; }}
        is_fedora() {{ return 1; }}
        sudo() {{ echo "$*"; }}
        install_package() {{ echo "installs $*"; }}
        command() {{ {'true' if there else 'false'}; }}
        {function('install_fairness_packages')}
        install_fairness_packages
    '''
    expected = [
        'installs redis-server',
        'systemctl disable --now redis-server',
    ]
    assert run_script(script) == ([] if there else expected)
