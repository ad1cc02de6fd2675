# SPDX-License-Identifier: Apache-2.0


"""The Debian packages: built, installed, used and removed again.

It is installed into a copy of this machine that vanishes with the test: an
overlay in a mount namespace of its own. There the commands of the install
guide are run as they are written.
"""

import os
import pathlib
import re
import subprocess
import textwrap
import zipfile

import pytest

from fairness_lab.testbed.nodes import processes
from tests.fixtures.nova_cloud import boards

# Nova is downloaded and packed, which takes minutes.
pytestmark = [
    pytest.mark.real,
    pytest.mark.beside,
    pytest.mark.timeout(2400),
]

TOP = pathlib.Path(__file__).resolve().parents[2]
GUIDE = TOP / 'doc' / 'source' / 'install' / 'index.rst'
UNINSTALLING = TOP / 'doc' / 'source' / 'install' / 'uninstall.rst'
PAGES = TOP / 'doc' / 'source' / 'admin' / 'dashboard.rst'
BUILT = 'build/packages'
SHARED = '/usr/share/nova-fairness'
WANTED = '/etc/systemd/system/multi-user.target.wants'
ENTER = """\
set -eu
mount -t tmpfs none {place}
mkdir {place}/upper {place}/work {place}/root
mount -t overlay overlay {place}/root \\
    -o lowerdir=/,upperdir={place}/upper,workdir={place}/work
for name in proc sys dev; do
    mount --rbind /$name {place}/root/$name
done
# Tests beside this one make and remove files there.
mount -t tmpfs none {place}/root/tmp
mkdir -p {place}/root/clone/{built}
mount --bind {packages} {place}/root/clone/{built}
exec chroot {place}/root bash -euo pipefail -c "$1"
"""


PLAIN = {'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', 'LC_ALL': 'C.UTF-8'}
"""Environment in the copy."""


@pytest.fixture
def enters(packages, tmp_path):
    """The beginning of commands that run a script in a copy of this machine;
    they become the shell of the script."""
    place = tmp_path / 'machine'
    place.mkdir()
    enter = ENTER.format(place=place, packages=packages, built=BUILT)
    return ['unshare', '--mount', 'bash', '-c', enter, 'enter']


@pytest.fixture
def copy(enters):
    """Runs a script in a copy of this machine."""

    def run(script):
        return subprocess.run(
            [*enters, script],
            capture_output=True,
            text=True,
            check=False,
            env=PLAIN,
        )

    return run


def section(title, guide=GUIDE):
    """Commands of a section of the install guide, or of another page."""
    text = guide.read_text(encoding='utf-8')
    _, after = re.split(rf'^{title}\n[=-]+\n', text, flags=re.MULTILINE)
    body = re.split(r'\n[=-]{3,}\n', after, maxsplit=1)[0]
    return re.findall(r'^ +# (.+)$', body, re.MULTILINE)


def test_one_command_builds_packages_and_a_wheel(packages):
    names = sorted(path.name for path in packages.iterdir())
    patterns = (
        r'nova-fairness-client_[0-9][^_]*_all\.deb',
        r'nova-fairness-cluster_[0-9][^_]*_all\.deb',
        r'nova-fairness-dashboard_[0-9][^_]*_all\.deb',
        r'nova-fairness_[0-9][^_]*_[a-z0-9]+\.deb',
        r'nova_fairness-[0-9].*-py3-none-any\.whl',
    )
    assert len(names) == len(patterns)
    for name, pattern in zip(names, patterns, strict=True):
        assert re.fullmatch(pattern, name)


@pytest.mark.parametrize(
    ('package', 'commands'),
    [
        ('nova-fairness', ['', '-ctl', '-keys', '-status']),
        ('nova-fairness-cluster', ['-cluster', '-relay']),
    ],
)
def test_a_package_has_the_man_pages_of_its_commands(
    packages, package, commands
):
    path = next(packages.glob(f'{package}_*.deb'))
    listed = subprocess.run(
        ['dpkg', '--contents', str(path)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for command in commands:
        assert f'/man1/nova-fairness{command}.1.gz' in listed
        assert f'./usr/bin/nova-fairness{command} ' in listed


WATCHING = sorted(
    [
        *(TOP / 'etc/prometheus').glob('*.rules.yml'),
        *(TOP / 'etc/grafana').glob('*.json'),
    ]
)
"""Rules and dashboards."""


def shared(path):
    """Where one of them is, below the folder of shared files."""
    below = 'grafana/' if path.suffix == '.json' else ''
    return f'share/nova-fairness/{below}{path.name}'


def test_the_package_has_all_dashboards_and_rules(packages):
    path = next(packages.glob('nova-fairness_*.deb'))
    listed = subprocess.run(
        ['dpkg', '--contents', str(path)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert len(WATCHING) == 8
    for each in WATCHING:
        assert f' ./usr/{shared(each)}\n' in listed


def test_the_wheel_has_all_dashboards_and_rules(packages):
    with zipfile.ZipFile(next(packages.glob('*.whl'))) as wheel:
        for each in WATCHING:
            [name] = [
                name
                for name in wheel.namelist()
                if name.endswith(f'.data/data/{shared(each)}')
            ]
            assert wheel.read(name) == each.read_bytes()


# Debian's client and all that it needs are downloaded.
@pytest.mark.slow
def test_the_client_of_debian_has_the_commands(copy):
    done = copy(
        """\
        cd /clone
        apt-get update
        apt-get install -y --no-install-recommends \\
            ./build/packages/nova-fairness-client_*.deb
        # A command line that is complete, in a cloud that is not there.
        openstack fairness server show --help
        openstack --os-auth-type none --os-endpoint http://127.0.0.1:9 \\
            fairness user list && exit 1
        zcat /usr/share/man/man1/openstack-fairness.1.gz | grep -q fairness
        apt-get purge -y nova-fairness-client
        test ! -e /usr/lib/python3/dist-packages/nova_fairness
        openstack fairness --help && exit 1
        echo nothing is left
        """
    )
    said = done.stdout[-6000:] + done.stderr[-3000:]
    assert done.returncode == 0, said
    assert 'openstack fairness server show' in done.stdout, said
    assert '127.0.0.1' in done.stderr, said
    assert 'nothing is left' in done.stdout


LOOK = """
import horizon
from django import urls
from django.template import loader

urls.get_resolver().url_patterns
from fairness_dashboard import connection
for name in ('project', 'admin'):
    panels = horizon.get_dashboard(name).get_panels()
    print(name, [each.slug for each in panels if 'fairness' in each.slug])
print(urls.reverse('horizon:project:fairness_starts:flavors'))
for name in ('starts', 'queue', 'share', 'border'):
    loader.get_template(f'fairness/{name}.html')
print('templates', connection.sdk.FairnessProxy.__name__)
"""


# Debian's Horizon and all that it needs are downloaded.
@pytest.mark.slow
def test_the_horizon_of_debian_has_the_pages(copy):
    [install, *_] = section('On Debian', PAGES)
    [purge] = section('Pages of Horizon', UNINSTALLING)
    assert purge == 'apt-get purge nova-fairness-dashboard'
    done = copy(
        f"""\
        cd /clone
        export DEBIAN_FRONTEND=noninteractive
        apt-get update
        {install} -y --no-install-recommends
        cd /usr/share/openstack-dashboard
        static=/var/lib/openstack-dashboard/static
        python3 manage.py shell <<'END'
{LOOK}
END
        grep -c fairness.launch $static/fairness/launch.js
        # What browsers read: the script of all plugins.
        grep -lr fairness.launch $static/dashboard/js | grep -c js
        {purge} -y
        test ! -e /usr/lib/python3/dist-packages/fairness_dashboard
        # Django leaves the folder, but no file in it.
        test ! -e $static/fairness/launch.js
        grep -lr fairness.launch $static/dashboard/js && exit 1
        # Horizon goes on without them.
        python3 manage.py shell <<'END'
from django import urls
urls.get_resolver().url_patterns
END
        find /usr /etc /var/lib/dpkg /var/lib/openstack-dashboard \\
            -name '*fairness*dashboard*' | grep . && exit 1
        echo nothing is left
        """
    )
    said = done.stdout[-6000:] + done.stderr[-3000:]
    assert done.returncode == 0, said
    assert 'fairness_servers' in done.stdout, said
    assert 'fairness_border' in done.stdout, said
    assert '/project/fairness_starts/flavors/' in done.stdout, said
    assert 'templates FairnessProxy' in done.stdout, said
    assert 'nothing is left' in done.stdout, said


SITE = """
import os
ALLOWED_HOSTS = ['127.0.0.1']
OPENSTACK_KEYSTONE_URL = os.environ.get('KEYSTONE', '')
CACHES = {'default': {
    'BACKEND': 'django.core.cache.backends.locmem.LocMemCache',
    'OPTIONS': {'MAX_ENTRIES': 100000}}}
SESSION_ENGINE = 'django.contrib.sessions.backends.cache'
"""
"""Settings of Debian's Horizon; it keeps sessions in itself."""

STARTS = """\
#!/bin/sh
# Becomes the Horizon of the copy: KEYSTONE STATE PLACE. Apache would serve
# its static files; --insecure serves them without DEBUG, which Debian unsets.
exec nsenter --target {pid} --mount --root \\
    env -i PATH=/usr/bin:/bin LC_ALL=C.UTF-8 KEYSTONE="$1" sh -euc '
        cd /usr/share/openstack-dashboard
        exec python3 manage.py runserver --insecure --noreload "$1"' sh "$3"
"""
READY, INSTALLS_S = 'Horizon is ready', 900


@pytest.fixture
def horizon_of_debian(enters, tmp_path):
    """A program that becomes Debian's Horizon with the package."""
    [install, *_] = section('On Debian', PAGES)
    script = f"""\
        cd /clone
        export DEBIAN_FRONTEND=noninteractive
        apt-get update
        {install} -y --no-install-recommends
        cat >>/etc/openstack-dashboard/local_settings.py <<'END'
{SITE}
END
        echo {READY}
        exec sleep infinity
        """
    log, program = tmp_path / 'log', tmp_path / 'horizon'
    with log.open('w') as out:
        running = subprocess.Popen(
            [*enters, script], env=PLAIN, stdout=out, stderr=out
        )
    try:
        processes.wait_until(
            lambda: READY in log.read_text() or running.poll() is not None,
            INSTALLS_S,
            1,
        )
        assert running.poll() is None, log.read_text()[-5000:]
        program.write_text(STARTS.format(pid=running.pid))
        program.chmod(0o755)
        yield program
    finally:
        running.kill()
        running.wait()


# Debian's Horizon and all that it needs are downloaded.
@pytest.mark.slow
def test_a_browser_reads_the_pages_in_the_horizon_of_debian(horizon_of_debian):
    tests = 'tests/integration/dashboard'
    done = subprocess.run(
        [
            *(boards.PYTHON, '-m', 'pytest', '-q', '-p', 'no:cacheprovider'),
            *(f'{tests}/test_pages.py', f'{tests}/test_launch.py'),
        ],
        cwd=TOP,
        env={**os.environ, 'FAIRNESS_DASHBOARD_HORIZON': horizon_of_debian},
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert int(re.search(r'^(\d+) passed', done.stdout, re.MULTILINE)[1]) >= 15


def test_the_guide_installs_it_and_nothing_is_left_when_it_is_purged(copy):
    install, check, enable, start, *_ = section('As a Debian package')
    assert install.startswith('apt-get install ./')
    # Nothing can be started here, where systemd does not run.
    assert start == 'systemctl start nova-fairness'
    done = copy(
        textwrap.dedent("""\
        files() {{
            find / -xdev -ignore_readdir_race -path /clone -prune -o -print |
                sort
        }}
        before=$(files)
        cd /clone
        {install} -y
        {check} && code=0 || code=$?
        echo "the check ended with $code"
        {enable}
        test -L {wanted}/nova-fairness.service
        nova-fairness --version
        nova-fairness-ctl --version
        nova-fairness-keys --help >/dev/null
        nova-fairness-privileged --help >/dev/null
        grep -q '^\\[fairness\\]' {shared}/nova-fairness.conf.sample
        grep -q fairness {shared}/policy.yaml.sample
        systemd-analyze verify nova-fairness.service
        stat -c 'mode %a of %U:%G' {conf}
        chmod 644 {conf}
        /var/lib/dpkg/info/nova-fairness.postinst configure 0
        stat -c 'then mode %a' {conf}
        nova-fairness-keys --directory /etc/nova-fairness/keys make ctl \\
            --role controller >/dev/null
        mkdir -p {kept}
        dpkg --remove nova-fairness
        test -e /etc/nova-fairness/keys/ctl.secret
        dpkg --purge nova-fairness
        for path in {made}; do
            test ! -e $path
        done
        after=$(files)
        diff <(echo "$before") <(echo "$after") | grep -v '/var/\\|/root/' |
            grep '^[<>]' && exit 1
        echo nothing is left
        """).format(
            install=install,
            check=check,
            enable=enable,
            wanted=WANTED,
            conf='/etc/nova-fairness/nova-fairness.conf',
            kept='/var/lib/nova-fairness/found /var/log/nova-fairness',
            made='/etc/nova-fairness /var/lib/nova-fairness '
            '/var/log/nova-fairness',
            shared=SHARED,
        )
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert re.search(r'the check ended with [012]\n', done.stdout), done.stdout
    assert 'Check: Configuration' in done.stdout
    assert 'mode 640 of root:root' in done.stdout
    assert 'then mode 640' in done.stdout
    assert 'nothing is left' in done.stdout
