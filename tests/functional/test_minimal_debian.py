# SPDX-License-Identifier: Apache-2.0

"""The lines of README and install guide, typed on the smallest Debian 12.

Only what Debian calls essential is there, and apt. It is a directory with a
mount namespace of its own, which has this machine's network and kernel.
"""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

# Debian and all that is installed are downloaded; the guide's other way, the
# package on a copy of this machine, is what test_packages.py tries.
pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.beside,
    pytest.mark.timeout(2400),
]

TOP = pathlib.Path(__file__).resolve().parents[2]
GUIDE = TOP / 'doc' / 'source' / 'install' / 'index.rst'
AUTHORITIES = pathlib.Path('/usr/local/share/ca-certificates')
"""What this machine believes besides Debian's list: a proxy's, for example."""

ENTER = """\
set -eu
for name in proc sys dev; do
    mount --rbind /$name {root}/$name
done
exec chroot {root} bash -euo pipefail -c "$1"
"""


class Debian:
    """A minimal system with a clone of this repository in ``/clone``."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root

    def make(self) -> None:
        subprocess.run(
            ['mmdebstrap', '--variant=minbase', 'bookworm', str(self.root)],
            check=True,
            capture_output=True,
        )
        subprocess.run(
            ['git', 'clone', '--quiet', str(TOP), str(self.root / 'clone')],
            check=True,
        )
        shutil.copy('/etc/resolv.conf', self.root / 'etc/resolv.conf')
        if AUTHORITIES.is_dir():
            shutil.copytree(
                AUTHORITIES,
                self.root / AUTHORITIES.relative_to('/'),
                dirs_exist_ok=True,
            )
        # What is installed would start on this machine's own network.
        deny = self.root / 'usr/sbin/policy-rc.d'
        deny.write_text('#!/bin/sh\nexit 101\n')
        deny.chmod(0o755)
        self.typed('apt-get update')

    def typed(self, *lines: str) -> str:
        """Run lines of bash in the clone; what they print, or a failure."""
        given = {
            name: value
            for name, value in os.environ.items()
            if name.lower().endswith('_proxy')
        }
        done = subprocess.run(
            [
                *('unshare', '--mount', 'bash', '-c'),
                ENTER.format(root=self.root),
                'enter',
                '\n'.join(['cd /clone', *lines]),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env={
                **given,
                'PATH': '/usr/sbin:/usr/bin:/sbin:/bin',
                'DEBIAN_FRONTEND': 'noninteractive',
                'LC_ALL': 'C.UTF-8',
            },
        )
        assert done.returncode == 0, done.stdout[-6000:]
        return done.stdout


@pytest.fixture(scope='module')
def debian(tmp_path_factory):
    made = Debian(tmp_path_factory.mktemp('debian'))
    made.make()
    yield made
    shutil.rmtree(made.root)


def section(path, title):
    """Text of a section, down to the next title."""
    text = path.read_text(encoding='utf-8')
    after = re.split(rf'\n{re.escape(title)}\n([=-])\1+\n', text)[-1]
    return re.split(r'\n[=-]{4,}\n', after)[0]


def unattended(line):
    return line.replace('apt-get install', 'apt-get install -y')


def commands(path, title):
    """Commands of a section that root types, in their order."""
    prompted = re.findall(r'^ +# (.+)$', section(path, title), re.MULTILINE)
    return [unattended(line) for line in prompted]


def blocks(path, title):
    """Blocks of commands of a section that shows no prompt."""
    found = re.findall(r'::\n\n((?:    .+\n)+)', section(path, title))
    return [
        [unattended(line.strip()) for line in block.splitlines()]
        for block in found
    ]


@pytest.fixture(scope='module')
def node(debian):
    """One on which the README's lines for a compute node were typed."""
    install, foreground, restore = blocks(
        TOP / 'README.rst', 'On a compute node'
    )
    debian.typed(*install)
    (shown,) = re.findall(
        r'code-block:: ini\n\n((?:    .+\n)+)',
        section(TOP / 'README.rst', 'On a compute node'),
    )
    written = debian.root / 'etc/nova-fairness/nova-fairness.conf'
    written.write_text(re.sub(r'^    ', '', shown, flags=re.MULTILINE))
    return debian, foreground[0], restore[0]


SCRAPE = """\
import urllib.request
with urllib.request.urlopen('http://127.0.0.1:9583/metrics') as answer:
    print(answer.read().decode())
"""


@pytest.fixture(scope='module')
def agent(node):
    """What an agent said, and its metrics in ``/root/metrics``."""
    debian, foreground, restore = node
    (debian.root / 'root/scrape.py').write_text(SCRAPE)
    return debian, debian.typed(
        # The port is free there, whatever this machine runs.
        "unshare --net bash -c '",
        'ip link set lo up',
        f'{foreground} 2>&1 & agent=$!',
        'for turn in $(seq 300); do',
        '    sleep 0.2',
        '    python3 /root/scrape.py >/root/metrics 2>/dev/null && break',
        'done',
        'kill $agent; wait $agent; echo "it ended with $?"',
        "'",
        restore,
    )


def test_the_readme_starts_an_agent_that_says_what_is_missing(agent):
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


def test_the_guide_installs_it_with_nova(node):
    debian, _foreground, _restore = node
    nova, laboratory = commands(GUIDE, 'Into a virtual environment')[-2:]
    said = debian.typed(
        nova,
        laboratory,
        '/opt/nova-fairness/bin/nova-fairness-sim list',
        '/opt/nova-fairness/bin/python -c "import nova.conf"',
    )
    assert 'two-nodes' in said


def test_the_guide_makes_keys_and_redis_for_many_nodes(node):
    debian, _foreground, _restore = node
    redis, *keys = commands(GUIDE, 'Many nodes')[:3]
    debian.typed(
        redis,
        'PATH=$PATH:/opt/nova-fairness/bin',
        *keys,
        'test -e /root/fairness-keys/node01.secret',
        'command -v redis-server',
    )


def test_the_filter_goes_into_an_environment_with_nova(node, packages):
    debian, _foreground, _restore = node
    shutil.copytree(
        packages, debian.root / 'clone/build/packages', dirs_exist_ok=True
    )
    (install,) = [
        line for line in commands(GUIDE, 'The HTTP interface') if 'pip' in line
    ]
    said = debian.typed(
        'python3 -m venv /opt/api',
        f'PATH=/opt/api/bin:$PATH {install}',
        '/opt/api/bin/python -c "import api_ext; print(api_ext.__file__)"',
    )
    assert '/opt/api/' in said


def test_the_package_needs_nothing_that_apt_does_not_bring(node, packages):
    debian, _foreground, _restore = node
    # As the guide to uninstalling says, or apt would ask whose file to take.
    debian.typed('rm -r /opt/nova-fairness /etc/nova-fairness')
    install, check, *_ = commands(GUIDE, 'As a Debian package')
    shutil.copytree(
        packages, debian.root / 'clone/build/packages', dirs_exist_ok=True
    )
    said = debian.typed(
        install,
        f'{check} && code=0 || code=$?',
        'echo "the check ended with $code"',
        'nova-fairness --version',
        'apt-get purge -y nova-fairness',
        'test ! -e /opt/venvs/nova-fairness',
    )
    assert re.search(r'the check ended with [012]\n', said), said
    assert 'Check: Configuration' in said
