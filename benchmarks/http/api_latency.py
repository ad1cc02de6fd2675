# SPDX-License-Identifier: Apache-2.0

"""How long the HTTP interface takes, and what its filter costs Nova.

Brings up the OpenStack of ``tests/fixtures/nova_cloud`` with two compute nodes
and servers of three users, once with guests that sleep and once with guests
that use all CPUs. One client asks over connections that stay open, one
request at a time. Three processes of nova-api run: one as configured, one that
keeps no answer of agents (``answers_kept = 0``), and one without the filter;
all else is the same.

The first measurement sends each kind of request once per round. The cost of a
request beyond authentication is its median less that of a request of the same
user, in the same process, for a path that does not exist. No request with a
token is cheaper: this one goes through Nova's whole pipeline and ends with 404
at the routes, before any policy or database. By default a process of Nova
remembers for five minutes what Keystone said of a token. The second
measurement sends the same request to the second and third process by turns
(A, B, B, A, and then B, A, A, B), while guests sleep. A process is always a
little faster or slower than another, so it starts five pairs of them.

Holds if ``/fairness/users`` takes less than 20 ms more than authentication,
and a request with the filter less than 1.02 times as long as without it, or
a ratio of 1 is within the 95 % interval. Intervals are bootstrapped from
pairs and rounds.

Run as root, on a machine that does nothing else, about ten minutes::

    python -m benchmarks.http.api_latency --out FILE

Exit code 1 if it does not hold.
"""

import argparse
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
import json
import os
import pathlib
import platform
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.http import nova_requests
from tests.fixtures.nova_cloud import cloud as cloud_module
from tests.fixtures.nova_cloud import fixtures
from tests.fixtures.nova_cloud import guest_image
from tests.fixtures.nova_cloud import machine

COMMAND = (
    'python -m benchmarks.http.api_latency '
    '--out benchmarks/results/api_latency.json'
)
BARS = {'beyond_authentication_ms': 20.0, 'filter_ratio': 1.02}
SERVICES = (nova_requests.AFRESH, nova_requests.WITHOUT)
PAIRS = 5
WARM_UP = 10
RESAMPLED = 2000
INTERVAL = (2.5, 97.5)

Times = npt.NDArray[np.float64]
"""Milliseconds, a row for each round."""


def latencies(client: nova_requests.Client, rounds: int) -> Mapping[str, Any]:
    """Send each kind of request once per round.

    :returns: what the kinds took, and cost beyond authentication.
    """
    taken = np.empty((rounds, len(nova_requests.KINDS)))
    for number in range(-WARM_UP, rounds):
        for column, request in enumerate(nova_requests.KINDS.values()):
            took, _ = client.ask(request)
            if number >= 0:
                taken[number, column] = took
    columns = dict(zip(nova_requests.KINDS, taken.T, strict=True))
    return {
        name: {
            'request': f'GET {nova_requests.KINDS[name].path}',
            'user': nova_requests.KINDS[name].user,
            'p50_ms': round(float(np.median(column)), 2),
            'p99_ms': round(float(np.percentile(column, 99)), 2),
            **compare_with_cheapest(name, columns),
        }
        for name, column in columns.items()
    }


def compare_with_cheapest(
    name: str, columns: Mapping[str, Times]
) -> Mapping[str, Any]:
    """Compare with a request that is only authenticated."""
    own = nova_requests.KINDS[name]
    base = next(
        columns[other]
        for other, request in nova_requests.KINDS.items()
        if request == nova_requests.cheapest_request(own.service, own.user)
    )
    if base is columns[name]:
        return {}
    value, between = compare_medians(columns[name], base, np.subtract)
    return {'beyond_authentication_ms': value, 'interval_95': between}


def ratios(cloud: cloud_module.Cloud, rounds: int) -> Mapping[str, Any]:
    """Compare pairs of processes, one with the filter and one without."""
    taken = np.stack(
        [
            measure_pair(cloud, number, rounds // PAIRS)
            for number in range(PAIRS)
        ]
    )
    found = {}
    for kind, name in enumerate(nova_requests.COMPARED):
        with_filter, without = taken[:, :, kind, 0], taken[:, :, kind, 1]
        value, between = compare_medians(with_filter, without, np.divide)
        found[name] = {
            'with_p50_ms': round(float(np.median(with_filter)), 2),
            'without_p50_ms': round(float(np.median(without)), 2),
            'ratio': value,
            'interval_95': between,
        }
    return found


def measure_pair(cloud: cloud_module.Cloud, number: int, rounds: int) -> Times:
    """Send the same to two new processes, by turns.

    :returns: by round, kind, with the filter or without, twice.
    """
    sides = SERVICES if number % 2 else SERVICES[::-1]
    taken = np.empty((rounds, len(nova_requests.COMPARED), len(sides), 2))
    with start_processes(
        cloud, dict(zip(sides, (True, False), strict=True))
    ) as of:
        of.ask(nova_requests.users_request(sides[0], 'admin'))
        for row in range(-WARM_UP, rounds):
            for kind, request in enumerate(nova_requests.COMPARED.values()):
                for turn, again in ((0, 0), (1, 0), (1, 1), (0, 1)):
                    side = turn if row % 2 else 1 - turn
                    took, _ = of.ask(
                        dataclasses.replace(request, service=sides[side])
                    )
                    if row >= 0:
                        taken[row, kind, side, again] = took
    return taken


@contextlib.contextmanager
def start_processes(
    cloud: cloud_module.Cloud, services: Mapping[str, bool]
) -> Iterator[nova_requests.Client]:
    """Have further processes of nova-api run.

    :param services: which, and whether with the filter.
    """
    kept = {'fairness_api': {'answers_kept': '0'}}
    running = []
    try:
        for service, filtered in services.items():
            cloud.plane.start_another_api(service, kept, filtered=filtered)
            running.append(service)
        with contextlib.closing(nova_requests.Client(cloud)) as client:
            yield client
    finally:
        for service in running:
            cloud.plane.stop_program(service)


def compare_medians(
    one: Times, other: Times, how: Callable[..., Any]
) -> tuple[float, list[float]]:
    """Compare medians.

    :param one: milliseconds; rounds, or pairs of processes and their rounds.
    :returns: the value, and its interval when pairs and rounds are resampled.
    """
    chance = np.random.default_rng(1)
    many = []
    for _ in range(RESAMPLED):
        drawn_one, drawn_other = one, other
        for _ in range(2 if one.ndim > 1 else 1):
            rows = chance.integers(len(drawn_one), size=len(drawn_one))
            drawn_one, drawn_other = drawn_one[rows], drawn_other[rows]
            if one.ndim > 1:
                drawn_one = drawn_one.swapaxes(0, 1)
                drawn_other = drawn_other.swapaxes(0, 1)
        many.append(how(np.median(drawn_one), np.median(drawn_other)))
    low, high = np.percentile(many, INTERVAL)
    whole = how(np.median(one), np.median(other))
    return round(float(whole), 4), [
        round(float(low), 4),
        round(float(high), 4),
    ]


def condition(
    cloud: cloud_module.Cloud, image: str, rounds: int
) -> Mapping[str, Any]:
    """Measure with guests of one kind."""
    owners = {user for user, _ in fixtures.SERVERS.values()}
    found: dict[str, Any] = {'guests': image}
    with nova_requests.servers(cloud, image):
        with start_processes(cloud, {nova_requests.AFRESH: True}) as client:
            machine.await_true(
                lambda: all(
                    cloud.users[name].user.encode()
                    in client.ask(
                        nova_requests.users_request(
                            nova_requests.AFRESH, 'admin'
                        )
                    )[1]
                    for name in owners
                ),
                lambda: 'the agents do not know all users',
            )
            found['requests'] = latencies(client, rounds)
        if image == guest_image.IDLE:
            found['filter'] = ratios(cloud, rounds)
    return found


def failed_bars(found: Mapping[str, Any]) -> Iterator[str]:
    """Name what does not hold."""
    for name, request in found['requests'].items():
        more_ms = request.get('beyond_authentication_ms', 0.0)
        if (
            name.startswith('users')
            and more_ms >= BARS['beyond_authentication_ms']
        ):
            yield f'{found["guests"]} guests, {name}: {more_ms} ms'
    for name, item in found.get('filter', {}).items():
        # A ratio below 1 is none that somebody has to pay for.
        if (
            item['ratio'] >= BARS['filter_ratio']
            and item['interval_95'][0] > 1
        ):
            yield f'{found["guests"]} guests, {name}: x {item["ratio"]}'


def measure_cloud(rounds: int) -> Mapping[str, Any]:
    """Bring a cloud up and measure in it."""
    with fixtures.running(print) as cloud:
        found = [
            condition(cloud, image, rounds)
            for image in (guest_image.IDLE, guest_image.BUSY)
        ]
    missed = [text for item in found for text in failed_bars(item)]
    return {
        'version': 1,
        'command': COMMAND,
        'machine': {
            'kernel': platform.release(),
            'cpus': os.cpu_count(),
            'python': platform.python_version(),
        },
        'hosts': len(cloud.nodes),
        'servers': len(fixtures.SERVERS),
        'rounds': rounds,
        'pairs': PAIRS,
        'bars': BARS,
        'conditions': found,
        'missed': missed,
        'passed': not missed,
    }


def main() -> int:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--out', type=pathlib.Path)
    parser.add_argument('--rounds', type=int, default=200)
    options = parser.parse_args()
    result = measure_cloud(options.rounds)
    text = json.dumps(result, indent=1) + '\n'
    print(text, end='')
    if options.out:
        options.out.write_text(text)
    return 0 if result['passed'] else 1


if __name__ == '__main__':
    sys.exit(main())
