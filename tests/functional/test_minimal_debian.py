# SPDX-License-Identifier: Apache-2.0

"""The lines of README and install guide, typed on the smallest Debian 12.

Those that need systemd are in ``test_services.py``, those that need guests in
``test_minimal_debian_lab.py``, and those that need an OpenStack in
``tests/integration/nova``; ``tests/unit/doc/test_typed_commands.py`` says
which is where.
"""

import re

import pytest

from tests.fixtures import minimal_debian

# Debian and all that is installed are downloaded; the guide's other way, the
# package on a copy of this machine, is what test_packages.py tries.
pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.beside,
    pytest.mark.timeout(2400),
]

README = minimal_debian.README
GUIDE = minimal_debian.guide('index')
UNINSTALL = minimal_debian.guide('uninstall')
PROGRAMS = 'PATH=$PATH:/opt/nova-fairness/bin'


@pytest.fixture(scope='module')
def debian(tmp_path_factory):
    with minimal_debian.running_debian(
        tmp_path_factory.mktemp('debian')
    ) as made:
        yield made


@pytest.fixture(scope='module')
def node(debian):
    """One on which the README's lines for a compute node were typed."""
    install, foreground, restore = minimal_debian.blocks(
        README, 'Installation on a compute node'
    )
    debian.typed(*install)
    debian.write(
        '/etc/nova-fairness/nova-fairness.conf',
        minimal_debian.example(README, 'Installation on a compute node'),
    )
    return debian, foreground[0], restore[0]


def alone(*lines):
    """Lines that are typed where the network has nothing but ``lo``.

    What they have started ends with them.
    """
    own = 'unshare --net --pid --fork --kill-child --mount-proc'
    begin = f"{own} bash -euo pipefail -c '"
    return [begin, 'ip link set lo up', *lines, "'"]


def awaited(line):
    """A line that is tried again and again until it does its work."""
    return f'for turn in $(seq 300); do sleep 0.2; {line} && break; done'


SCRAPE = """\
import urllib.request
with urllib.request.urlopen('http://127.0.0.1:9583/metrics') as answer:
    print(answer.read().decode())
"""


@pytest.fixture(scope='module')
def agent(node):
    """What an agent said, and its metrics in ``/root/metrics``."""
    debian, foreground, restore = node
    debian.write('/root/scrape.py', SCRAPE)
    scrape = 'python3 /root/scrape.py >/root/metrics 2>/dev/null'
    return debian, debian.typed(
        # The port is free there, whatever this machine runs.
        *alone(
            f'{foreground} 2>&1 & agent=$!',
            awaited(scrape),
            'kill $agent; wait $agent; echo "it ended with $?"',
        ),
        restore,
    )


def test_the_readme_starts_an_agent_that_names_missing_parts(agent):
    _debian, said = agent
    assert 'libvirt' in said, said
    assert 'it ended with 0' in said, said
    assert '0 controls restored, 0 failed' in said, said


def test_prometheus_accepts_metrics_and_alerts(agent):
    debian, _said = agent
    said = debian.typed(
        'apt-get install -y --no-install-recommends prometheus',
        'promtool check rules etc/prometheus/nova-fairness.rules.yml',
        'grep -c ^nova_fairness_ /root/metrics',
        'promtool check metrics </root/metrics',
    )
    assert 'SUCCESS' in said


def test_the_guide_installs_it_with_nova_and_the_readme_simulates(node):
    debian, _foreground, _restore = node
    nova, laboratory = minimal_debian.commands(
        GUIDE, 'Into a virtual environment'
    )[-2:]
    (simulate,) = minimal_debian.blocks(README, 'Simulation without a cloud')
    said = debian.typed(
        nova,
        laboratory,
        PROGRAMS,
        *simulate,
        'ls results/two-nodes',
        '/opt/nova-fairness/bin/python -c "import nova.conf"',
    )
    assert 'two-nodes' in said
    assert 'result.json' in said


def test_the_guide_starts_it_by_hand_and_links_the_programs(node):
    debian, _foreground, _restore = node
    make, start, link = minimal_debian.commands(GUIDE, 'First start')
    said = debian.typed(
        make,
        *alone(
            f'{start} 2>&1 & agent=$!',
            'sleep 3; kill $agent; wait $agent; echo "it ended with $?"',
        ),
        link,
        'nova-fairness --version',
        'groupadd nova',
        *minimal_debian.commands(GUIDE, 'As a user who is not root')[:1],
        'stat -c "read by %G" /etc/nova-fairness/nova-fairness.conf',
    )
    assert 'it ended with 0' in said, said
    assert 'read by nova' in said, said


def test_the_guide_makes_keys_and_a_controller_sees_its_nodes(node):
    debian, foreground, _restore = node
    redis, *keys, look = minimal_debian.commands(GUIDE, 'Many nodes')
    lines = minimal_debian.blocks(README, 'Many nodes')[0]
    debian.write(
        '/etc/hosts', '127.0.0.1 localhost node01 redis.example.org\n'
    )
    shown = minimal_debian.example(README, 'Many nodes')
    assert shown == minimal_debian.example(GUIDE, 'Many nodes')
    more = '\nhost = 127.0.0.1\n[fairness]\nhost = node01\nenforce = false\n'
    for name, program in (('node', 'node01'), ('nova-fairness', 'ctl1')):
        debian.write(
            f'/etc/nova-fairness/{name}.conf',
            shown.replace('fairness/keys', f'fairness/keys/{program}').rstrip()
            + more,
        )
    of_node = foreground.replace('nova-fairness.conf', 'node.conf')
    made = '/root/fairness-keys'
    said = debian.typed(
        redis,
        PROGRAMS,
        *keys,
        'for name in node01 ctl1; do',
        '    install -d /etc/nova-fairness/keys/$name',
        f'    cp -p {made}/allowed.json {made}/$name.secret \\',
        '        /etc/nova-fairness/keys/$name/',
        'done',
        *alone(
            'redis-server --requirepass PASSWORD --dir /tmp >/dev/null &',
            f'{of_node} 2>/root/agent.log & agent=$!',
            awaited(f'{lines[0]} | grep node01'),
            *lines,
            look,
            'kill $agent; wait $agent; echo "it ended with $?"',
        ),
        *minimal_debian.commands(UNINSTALL, 'A compute node')[-1:],
    )
    assert re.search(r'^node01 +.*AssetFairnessMetric', said, re.MULTILINE)
    assert 'it ended with 0' in said, said


@pytest.fixture(scope='module')
def built(debian):
    """The packages, built as the guide says."""
    (build,), _ = minimal_debian.blocks(GUIDE, 'As a Debian package')
    debian.typed(build)
    return debian


def test_the_filter_goes_into_an_environment_with_nova(node, built):
    install, check = minimal_debian.commands(GUIDE, 'The HTTP interface')
    away = minimal_debian.commands(UNINSTALL, 'The HTTP interface')
    said = built.typed(
        'python3 -m venv /opt/api',
        'PATH=/opt/api/bin:$PATH',
        install,
        # Not what lies in the clone.
        'cd /root',
        'python -c "import api_ext; print(api_ext.__file__)"',
        f'{check} && code=0 || code=$?',
        'echo "the check ended with $code"',
        *away,
        'python -c "import api_ext" && exit 1',
        'echo nothing is left',
    )
    assert '\n/opt/api/' in said
    assert 'nothing is left' in said
    assert re.search(r'the check ended with [012]\n', said), said


def test_the_package_replaces_an_uninstalled_one(node, built):
    # Otherwise apt would ask whose file to take.
    _stop, restore, purge, *away, _revoke = minimal_debian.commands(
        UNINSTALL, 'A compute node'
    )
    install, check, *_ = minimal_debian.commands(GUIDE, 'As a Debian package')
    said = built.typed(
        *away,
        install,
        f'{check} && code=0 || code=$?',
        'echo "the check ended with $code"',
        'nova-fairness --version',
        restore,
        purge,
        'test ! -e /opt/venvs/nova-fairness',
        'test ! -e /etc/nova-fairness',
    )
    assert re.search(r'the check ended with [012]\n', said), said
    assert 'Check: Configuration' in said
    assert '0 controls restored, 0 failed' in said


def test_a_package_without_nova_is_small(built):
    _, (build,) = minimal_debian.blocks(GUIDE, 'As a Debian package')
    said = built.typed(
        'rm -r build/packages',
        build,
        'ls build/packages',
        'stat -c "%s bytes" build/packages/nova-fairness_*.deb',
    )
    assert 'nova-fairness-cluster' not in said
    (size,) = re.findall(r'^(\d+) bytes$', said, re.MULTILINE)
    limit = re.search(r'of less than (\d+) MB', GUIDE.read_text())
    assert int(size) < int(limit[1]) * 10**6
