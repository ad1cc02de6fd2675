# SPDX-License-Identifier: Apache-2.0

"""The fuzzers run, and what they found before is replayed."""

import pathlib
import shutil
import subprocess
import sys

import pytest

from tests.fuzz import seeds
from tests.fuzz import targets

TOP = pathlib.Path(__file__).resolve().parents[2]

FOUND = [
    pytest.param(name, path, id=f'{name}-{path.name[:16]}')
    for name in targets.TARGETS
    for path in sorted((seeds.CORPUS / name).iterdir())
]


@pytest.mark.parametrize(('name', 'path'), FOUND)
def test_what_a_fuzzer_found_breaks_nothing(name, path):
    targets.TARGETS[name](path.read_bytes())


@pytest.mark.parametrize('name', targets.TARGETS)
def test_seeds_are_those_of_this_release(name):
    expected = {'codec': seeds.of_codec, 'messages': seeds.of_messages}[name]()
    for seed, content in expected.items():
        assert (seeds.CORPUS / name / f'seed-{seed}').read_bytes() == content


@pytest.mark.parametrize(
    'runs', [4_000, pytest.param(20_000, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize('name', targets.TARGETS)
def test_nothing_new_is_found_in_a_bounded_run(name, runs, tmp_path):
    corpus = tmp_path / 'corpus'
    shutil.copytree(seeds.CORPUS / name, corpus)
    done = subprocess.run(
        [
            sys.executable,
            f'tests/fuzz/fuzz_{name}.py',
            f'-runs={runs}',
            '-seed=1',
            f'-max_len={targets.MOST_BYTES}',
            f'-artifact_prefix={tmp_path}/',
            '-timeout=20',
            '-rss_limit_mb=1024',
            '-print_final_stats=1',
            str(corpus),
        ],
        cwd=TOP,
        capture_output=True,
        check=False,
        text=True,
        errors='replace',
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert 'stat::number_of_executed_units' in done.stderr
