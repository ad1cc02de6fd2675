# SPDX-License-Identifier: Apache-2.0

"""A real Horizon with the plugin, installed as its operators install it.

Programs of another environment start one by
``python -m tests.integration.dashboard.horizon_site KEYSTONE STATE PLACE``:
URL of Keystone's version 3, directory for its files, and address and port.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import importlib.util
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

from fairness_dashboard import enabled

OTHER = os.environ.get('FAIRNESS_DASHBOARD_HORIZON')
"""Program that becomes a Horizon of another environment; its arguments are
those of this module."""

START_S = 120.0
"""In which Horizon has to answer. It writes its style sheets first."""

SETTINGS = """\
import os

from horizon.utils import secret_key

DEBUG = True
ALLOWED_HOSTS = [
    '127.0.0.1', 'localhost', os.environ['FAIRNESS_DASHBOARD_ADDRESS']]
STATE = os.environ['FAIRNESS_DASHBOARD_STATE']
SECRET_KEY = secret_key.generate_or_read_from_file(f'{STATE}/secret')
OPENSTACK_KEYSTONE_URL = os.environ['FAIRNESS_DASHBOARD_KEYSTONE']
OPENSTACK_HOST = '127.0.0.1'
CACHES = {'default': {
    'BACKEND': 'django.core.cache.backends.locmem.LocMemCache',
    # Style sheets alone are more than the usual 300, and push sessions out.
    'OPTIONS': {'MAX_ENTRIES': 100000}}}
SESSION_ENGINE = 'django.contrib.sessions.backends.cache'
STATIC_ROOT = f'{STATE}/static'
TIME_ZONE = 'UTC'
COMPRESS_ENABLED = True
COMPRESS_OFFLINE = False
COMPRESS_MTIME_DELAY = 3600
"""


def _place() -> pathlib.Path:
    found = importlib.util.find_spec('openstack_dashboard')
    assert found is not None, 'this needs the environment of the dashboard'
    assert found.origin is not None
    return pathlib.Path(found.origin).parent


def install() -> None:
    """Copy the settings files of the plugin, and settings of the site."""
    local = _place() / 'local'
    (local / 'local_settings.py').write_text(SETTINGS)
    for old in (local / 'enabled').glob('_31*.py'):
        old.unlink()
    source = pathlib.Path(str(enabled.__file__)).parent
    for each in source.glob('_31*.py'):
        shutil.copy(each, local / 'enabled')


def _free_port() -> int:
    with socket.socket() as made:
        made.bind(('127.0.0.1', 0))
        return int(made.getsockname()[1])


def _command(place: str) -> list[str]:
    """Command line of a Horizon at an address and port."""
    django = [sys.executable, '-m', 'django']
    return [*django, 'runserver', '--noreload', place]


def _environment(keystone: str, state: str, place: str) -> Mapping[str, str]:
    """Variables that a Horizon reads, and those that are there."""
    return {
        **os.environ,
        'DJANGO_SETTINGS_MODULE': 'openstack_dashboard.settings',
        'FAIRNESS_DASHBOARD_STATE': state,
        'FAIRNESS_DASHBOARD_KEYSTONE': keystone,
        'FAIRNESS_DASHBOARD_ADDRESS': place.rpartition(':')[0],
    }


@contextlib.contextmanager
def serving(keystone: str, state: pathlib.Path) -> Iterator[str]:
    """URL of a Horizon that runs.

    :param keystone: URL of Keystone's version 3.
    :param state: directory for its files; kept ones make its start faster.
    """
    place = f'127.0.0.1:{_free_port()}'
    command = [OTHER, keystone, str(state), place]
    if not OTHER:
        install()
        command = _command(place)
    log = state / 'horizon.log'
    with log.open('w') as file:
        process = subprocess.Popen(
            command,
            env=_environment(keystone, str(state), place),
            stdout=file,
            stderr=file,
        )
        try:
            url = f'http://{place}'
            _wait(url, process, log)
            yield url
        finally:
            process.terminate()
            process.wait()


def _wait(url: str, process: subprocess.Popen, log: pathlib.Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f'{url}/auth/login/', timeout=60):
                return
        except urllib.error.HTTPError as error:
            raise AssertionError(f'{error}\n{log.read_text()}') from error
        except OSError:
            time.sleep(0.2)
    raise AssertionError(log.read_text()[-5000:])


def main(keystone: str, state: str, place: str) -> None:
    """Become a Horizon."""
    install()
    command = _command(place)
    os.execve(command[0], command, _environment(keystone, state, place))


if __name__ == '__main__':
    main(*sys.argv[1:])
