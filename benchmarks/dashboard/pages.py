# SPDX-License-Identifier: Apache-2.0

"""Time of Horizon's pages for a cloud of 1,000 requests and 500 hosts.

A real Horizon with the plugin, on loopback. Behind it is the fake OpenStack of
the tests of the pages: the HTTP interface, the cluster service and its store
are real, and Nova, Placement, Keystone and the agents are fakes in this
process. A run starts a Horizon of its own, logs an operator and a member in,
and loads all pages in turn, so that each page meets the same state of the
machine. The page ``empty`` is Horizon's own page of settings, which asks no
service. Lists have pages of 50 rows, hosts pages of ten.

Of each load the time until all of it is read is recorded, and the CPU time of
Horizon and of this process, which is what the page needs on a machine that
does other work, too. ``behind_s`` is the part of the time in which the
services behind Horizon worked, ``calls`` how often
Horizon asked them, ``bytes`` the size of the page without its style sheets,
scripts and pictures. ``ratio`` is the median of a page by that of the empty
one in the same run. Holds if each 95th percentile is less than two seconds.

It needs the virtual environment that ``tools/test.sh --dashboard`` makes, and
takes about ten minutes::

    build/dashboard/bin/python -m benchmarks.dashboard.pages --out FILE

Exit code 1 if it does not hold.
"""

import argparse
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
import os
import pathlib
import re
import sys
import tempfile
import time
from typing import Any

import numpy as np
import requests

from benchmarks.queue import recorded
from tests.integration.dashboard import fake_keystone
from tests.integration.dashboard import fake_openstack
from tests.integration.dashboard import horizon_site

BAR_S = 2.0
EMPTY = 'empty'
WARM_UP = 2
PROJECTS = 100
KEPT_S = 1.0
"""The default of ``[fairness_api] answers_kept``."""

_ROWS = re.compile(r'<tr\b|<section\b')
_FIELDS = re.compile(r'<input[^>]*type="hidden"[^>]*>')
_ATTRIBUTE = re.compile(r'(name|value)="([^"]*)"')


@dataclasses.dataclass(frozen=True)
class Page:
    """A page of Horizon.

    :ivar user: of the fake Keystone.
    :ivar rows: how many rows or sections it has at least.
    """

    user: str
    path: str
    rows: int = 0


PAGES: Mapping[str, Page] = {
    EMPTY: Page('admin', 'settings/'),
    'queue': Page('admin', 'admin/fairness_queue/', 50),
    'hosts': Page('admin', 'admin/fairness_hosts/', 10),
    'board': Page('admin', 'admin/fairness_board/', 50),
    'tree': Page('admin', 'admin/fairness_tree/', 50),
    'requests of a member': Page('alice', 'project/fairness_requests/', 50),
}


class CountedOpenStack:
    """The fake OpenStack, and how often and how long it was asked.

    :ivar calls: since it was made.
    :ivar spent_s: seconds in which it worked on them.
    """

    def __init__(self, cloud: fake_openstack.FakeOpenStack) -> None:
        self._cloud = cloud
        self.keystone = cloud.keystone
        self.calls = 0
        self.spent_s = 0.0

    def __call__(self, environ: Any, start_response: Any) -> Any:
        begun_s = time.perf_counter()
        answer = [*self._cloud(environ, start_response)]
        self.spent_s += time.perf_counter() - begun_s
        self.calls += 1
        return answer


@dataclasses.dataclass(frozen=True)
class Load:
    """Time and work of one load of a page.

    :ivar cpu_s: of Horizon and of this process.
    :ivar behind_s: seconds of the services behind Horizon.
    """

    seconds: float
    cpu_s: float
    behind_s: float
    calls: int
    size: int


def cpu() -> float:
    """CPU seconds of this process and of Horizon, its child."""
    found = time.process_time()
    children = pathlib.Path(f'/proc/self/task/{os.getpid()}/children')
    for child in children.read_text().split():
        stat = pathlib.Path(f'/proc/{child}/stat').read_text()
        ticks = stat.rpartition(')')[2].split()[11:13]
        found += sum(map(int, ticks)) / os.sysconf('SC_CLK_TCK')
    return found


def log_in(site: str, user: str) -> requests.Session:
    """A user of Horizon.

    :raises RuntimeError: if Horizon refuses the login.
    """
    session = requests.Session()
    url = f'{site}/auth/login/'
    form = session.get(url, timeout=120)
    fields = (
        dict(_ATTRIBUTE.findall(each)) for each in _FIELDS.findall(form.text)
    )
    texts = {each['name']: each.get('value', '') for each in fields}
    answer = session.post(
        url,
        {**texts, 'username': user, 'password': fake_keystone.PASSWORD},
        headers={'Referer': url},
        allow_redirects=False,
        timeout=120,
    )
    if answer.status_code != requests.codes.found:
        raise RuntimeError(f'login of {user}: HTTP {answer.status_code}')
    return session


def load_page(
    session: requests.Session, site: str, page: Page, behind: CountedOpenStack
) -> Load:
    """Load a page.

    :raises RuntimeError: if it is not the page, or has too few rows.
    """
    calls, spent_s = behind.calls, behind.spent_s
    begun_s, cpu_s = time.perf_counter(), cpu()
    answer = session.get(
        f'{site}/{page.path}', allow_redirects=False, timeout=120
    )
    took_s = time.perf_counter() - begun_s
    rows = len(_ROWS.findall(answer.text))
    if answer.status_code != requests.codes.ok or rows < page.rows:
        raise RuntimeError(
            f'{page.path}: HTTP {answer.status_code}, {rows} rows'
        )
    return Load(
        took_s,
        cpu() - cpu_s,
        behind.spent_s - spent_s,
        behind.calls - calls,
        len(answer.content),
    )


def measure_pages(
    site: str, behind: CountedOpenStack, loads: int
) -> dict[str, Any]:
    """Load all pages in turn."""
    users = {
        user: log_in(site, user)
        for user in {page.user for page in PAGES.values()}
    }
    taken: dict[str, list[Load]] = {name: [] for name in PAGES}
    for number in range(-WARM_UP, loads):
        for name, page in PAGES.items():
            load = load_page(users[page.user], site, page, behind)
            if number >= 0:
                taken[name].append(load)
    base_s = float(np.median([each.seconds for each in taken[EMPTY]]))
    return {name: _figures(each, base_s) for name, each in taken.items()}


def _figures(loads: list[Load], base_s: float) -> dict[str, float]:
    """Figures of a page.

    :param base_s: median of the empty page.
    """
    seconds = [each.seconds for each in loads]
    cpu_s = [each.cpu_s for each in loads]
    behind = [each.behind_s for each in loads]
    return {
        'p50_s': round(float(np.percentile(seconds, 50)), 4),
        'p95_s': round(float(np.percentile(seconds, 95)), 4),
        'p50_cpu_s': round(float(np.percentile(cpu_s, 50)), 2),
        'p95_cpu_s': round(float(np.percentile(cpu_s, 95)), 2),
        'behind_s': round(float(np.median(behind)), 4),
        'ratio': round(float(np.median(seconds)) / base_s, 2),
        'calls': max(each.calls for each in loads),
        'bytes': max(each.size for each in loads),
    }


@contextlib.contextmanager
def clouds(
    requests_count: int, hosts: int
) -> Iterator[Callable[[pathlib.Path], Any]]:
    """A cloud, and what starts a Horizon before it.

    :returns: makes a context with the URL of Horizon and the cloud.
    """
    # The cloud of tests has a host and three requests that wait.
    size = fake_openstack.CloudSize(
        hosts - 1, requests_count - 3, PROJECTS, KEPT_S
    )
    with (
        tempfile.TemporaryDirectory() as place,
        fake_openstack.serving() as endpoint,
    ):
        cloud = fake_openstack.FakeOpenStack(place, size=size)
        behind = CountedOpenStack(cloud)
        endpoint.show(behind)

        @contextlib.contextmanager
        def started(
            state: pathlib.Path,
        ) -> Iterator[tuple[str, CountedOpenStack]]:
            with horizon_site.serving(endpoint.keystone, state) as site:
                yield site, behind

        try:
            yield started
        finally:
            cloud.world.close()


def range_over_runs(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Smallest and largest figures of each page over all runs."""
    return {
        name: {
            'user': page.user,
            'path': page.path,
            **{
                figure: [
                    min(run[name][figure] for run in runs),
                    max(run[name][figure] for run in runs),
                ]
                for figure in runs[0][name]
            },
        }
        for name, page in PAGES.items()
    }


def _parse_arguments() -> argparse.Namespace:
    parser = recorded.parser(__doc__)
    parser.add_argument('--requests', type=int, default=1000)
    parser.add_argument('--hosts', type=int, default=500)
    parser.add_argument('--loads', type=int, default=20)
    parser.add_argument('--runs', type=int, default=3)
    return parser.parse_args()


def main() -> int:
    """Measure, and write what was found."""
    given = _parse_arguments()
    runs: list[dict[str, Any]] = []
    with (
        clouds(given.requests, given.hosts) as started,
        tempfile.TemporaryDirectory() as state,
    ):
        for _ in range(given.runs):
            with started(pathlib.Path(state)) as (site, behind):
                runs.append(measure_pages(site, behind, given.loads))
            print(runs[-1], flush=True)
    pages = range_over_runs(runs)
    slow = [name for name in PAGES if pages[name]['p95_s'][1] >= BAR_S]
    recorded.write(
        given.out,
        {
            'requests': given.requests,
            'hosts': given.hosts,
            'loads': given.loads,
            'load_average': os.getloadavg(),
            'bar_s': BAR_S,
            'slow': slow,
            'passed': not slow,
            'pages': pages,
            'runs': runs,
        },
    )
    return 0 if not slow else 1


if __name__ == '__main__':
    sys.exit(main())
