# SPDX-License-Identifier: Apache-2.0

"""The fuzzers run, and what they found before is replayed."""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

import pytest

from tests.fixtures import effort
from tests.fuzz import campaign
from tests.fuzz import seeds
from tests.fuzz import targets

TOP = pathlib.Path(__file__).resolve().parents[2]

FOUND = [
    pytest.param(name, path, id=f'{name}-{path.name[:16]}')
    for name in targets.TARGETS
    for path in sorted((seeds.CORPUS / name).iterdir())
]


@pytest.mark.parametrize(('name', 'path'), FOUND)
def test_an_input_that_a_fuzzer_found_breaks_nothing(name, path):
    targets.TARGETS[name](path.read_bytes())


@pytest.mark.parametrize('name', targets.TARGETS)
def test_seeds_are_those_of_this_release(name):
    expected = {'codec': seeds.of_codec, 'messages': seeds.of_messages}[name]()
    for seed, content in expected.items():
        assert (seeds.CORPUS / name / f'seed-{seed}').read_bytes() == content


_FRESH = ('sh', '-c', '"$@"; exit $?', 'sh')
"""A program inherits the peak memory of the process that forked it, and the
fuzzer's limit counts it. A shell in between has almost none."""


def test_a_program_starts_without_the_peak_memory_of_these_tests():
    peak = 'import resource as r; print(r.getrusage(r.RUSAGE_SELF).ru_maxrss)'
    large = bytearray(300_000_000)
    done = subprocess.run(
        [*_FRESH, sys.executable, '-c', peak],
        capture_output=True,
        check=True,
        text=True,
    )
    assert int(done.stdout) * 1024 < len(large)


@pytest.mark.parametrize(
    'runs', [4_000, pytest.param(20_000, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize('name', targets.TARGETS)
def test_a_bounded_fuzz_run_finds_no_new_error(name, runs, tmp_path):
    corpus = tmp_path / 'corpus'
    shutil.copytree(seeds.CORPUS / name, corpus)
    done = subprocess.run(
        [
            *_FRESH,
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


INPUTS = {
    'casts': 30, 'answers': 30, 'outages': 15, 'rows': 35, 'accounts': 20,
    'agents': 20, 'files': 60, 'slurm': 3000, 'slurmrestd': 1500,
    'lsf': 3000, 'condor': 3000, 'snapshots': 3000,
}  # fmt: skip
"""Of each area with ``--full``."""

_HOUR_S = 3600.0
_BATCH = 20

REPLAYED = [
    pytest.param(area, seed, id=f'{area}-{seed}')
    for area, found in json.loads(
        (seeds.CORPUS / 'campaign.json').read_text('utf-8')
    ).items()
    for seed in found
]


def test_every_area_of_the_campaign_has_its_inputs():
    assert INPUTS.keys() == campaign.AREAS.keys()


@pytest.mark.repeated
@pytest.mark.parametrize(('area', 'seed'), REPLAYED)
def test_an_input_that_delayed_a_victim_no_longer_does(area, seed):
    campaign.once(area, seed)


@pytest.mark.parametrize('area', campaign.AREAS)
@pytest.mark.filterwarnings('ignore')
def test_a_victim_starts_despite_messages_of_others(area):
    for seed in range(effort.count_to_try(INPUTS[area], 16)):
        try:
            campaign.once(area, seed)
        except Exception as error:
            error.add_note(f'area {area}, seed {seed}')
            raise


@pytest.mark.slow
@pytest.mark.filterwarnings('ignore')
def test_a_victim_starts_for_an_hour_despite_messages_of_others(capsys):
    """The seed is printed; FAIRNESS_FUZZ_SEED repeats a run."""
    first = int(
        os.environ.get('FAIRNESS_FUZZ_SEED')
        or random.SystemRandom().getrandbits(32)
    )
    with capsys.disabled():
        print(f'\nfuzz campaign: FAIRNESS_FUZZ_SEED={first}')
    end_s, seed, found = time.monotonic() + _HOUR_S, first, []
    while time.monotonic() < end_s:
        for area in campaign.AREAS:
            for each in range(seed, seed + _BATCH):
                try:
                    campaign.once(area, each)
                except Exception as error:
                    found.append(f'{area} {each}: {error!r}')
        seed += _BATCH
    assert not found, '\n'.join(found)
