# SPDX-License-Identifier: Apache-2.0

"""What several functional tests need and what takes long to make."""

import pathlib
import subprocess

import pytest

_TOP = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope='session')
def packages(tmp_path_factory):
    """A directory with what one command built."""
    place = tmp_path_factory.mktemp('packages')
    done = subprocess.run(
        [str(_TOP / 'tools' / 'deb.sh'), '--out', str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    return place
