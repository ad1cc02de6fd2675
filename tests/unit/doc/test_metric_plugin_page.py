# SPDX-License-Identifier: Apache-2.0

"""The page for authors of metrics does what it says."""

import os
import pathlib
import re
import subprocess
import sys
import textwrap
import tomllib

import pytest

TOP = pathlib.Path(__file__).resolve().parents[3]
PAGE = TOP / 'doc' / 'source' / 'contributor' / 'metric-plugin.rst'
BLOCK = re.compile(
    r'^\.\. code-block:: \w+\n   :caption: (?P<path>\S+)\n\n'
    r'(?P<body>(?:   .*\n|\n)+)',
    re.MULTILINE,
)
LOAD = """
from nova_fairness import plugins
for name, text in plugins.describe_metrics().items():
    print(name, '=', text)
    plugins.load_metric(name)
"""


def files():
    """Content by path of every file that the page shows."""
    text = PAGE.read_text(encoding='utf-8')
    return {
        match['path']: textwrap.dedent(match['body']).strip() + '\n'
        for match in BLOCK.finditer(text)
    }


@pytest.fixture
def package(tmp_path):
    """The page's package, written down and registered as pip would."""
    for path, body in files().items():
        target = tmp_path / path
        target.parent.mkdir(exist_ok=True)
        target.write_text(body, encoding='utf-8')
    project = tomllib.loads(files()['pyproject.toml'])['project']
    lines = []
    for group, points in project['entry-points'].items():
        lines.append(f'[{group}]')
        lines.extend(f'{name} = {value}' for name, value in points.items())
    installed = tmp_path / 'campus_metrics-1.0.dist-info'
    installed.mkdir()
    (installed / 'METADATA').write_text(
        f'Metadata-Version: 2.1\nName: {project["name"]}\nVersion: 1.0\n'
    )
    (installed / 'entry_points.txt').write_text('\n'.join(lines) + '\n')
    return tmp_path


def run(package, *arguments):
    """Run Python beside the package, in a process of its own."""
    environment = os.environ | {
        'PYTHONPATH': os.pathsep.join([str(package), str(TOP)]),
        'XDG_CACHE_HOME': str(package / 'cache'),
    }
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=package,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_page_shows_two_metrics_their_registration_and_their_tests():
    assert set(files()) == {
        'campus_metrics/equal.py',
        'campus_metrics/cpu_only.py',
        'pyproject.toml',
        'test_campus_metrics.py',
    }


def test_metrics_of_the_page_are_found_by_their_names(package):
    done = run(package, '-c', LOAD)
    assert done.returncode == 0, done.stderr
    assert 'EqualMetric = Finds everybody equally heavy.' in done.stdout
    assert 'CpuOnlyMetric = Compares users by the part' in done.stdout
    assert 'unusable' not in done.stdout


def test_contract_suite_of_the_page_runs_and_passes(package):
    done = run(
        package, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '--rootdir=.'
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r'^18 passed', done.stdout, re.MULTILINE), done.stdout


def test_metric_of_the_page_weighs_users_by_their_cpu_time(package):
    question = (
        'import numpy as np\n'
        'from campus_metrics import cpu_only\n'
        'from nova_fairness.measure import metric\n'
        'from nova_fairness.model import resources\n'
        'some = resources.RESOURCES.vector\n'
        'none = np.zeros((2, len(resources.RESOURCES)))\n'
        'print(cpu_only.CpuOnlyMetric().users(metric.Totals(\n'
        '    instance_heaviness=np.zeros(2), endowment=none,\n'
        '    usage=np.array([some(cpu_time=6, memory=9), some(cpu_time=1)]),\n'
        '    quota=np.array([some(cpu_time=4)] * 2),\n'
        '    supply=some(cpu_time=8))).tolist())\n'
    )
    done = run(package, '-c', question)
    assert done.stdout == '[1.5, 0.25]\n', done.stderr
