# SPDX-License-Identifier: Apache-2.0

"""What the tests of the cloud look at, and wait for."""

from collections.abc import Callable
from collections.abc import Mapping
import json
import re
import subprocess
from typing import Any

from fairness_lab.testbed.nodes import groups
from nova_fairness.model import defaults
from tests.fixtures.nova_cloud import cloud as cloud_module
from tests.fixtures.nova_cloud import compute_node
from tests.fixtures.nova_cloud import machine
from tests.fixtures.nova_cloud import places
from tests.fixtures.nova_cloud import rest

TIMEOUT_S = 3600
"""Of one test, the cloud's coming up among it, on a very busy machine."""

DIFFERENT = 1.2
"""Ratio of shares that is no accident."""


def eventually(
    holds: Callable[[], bool], what: Callable[[], object] = lambda: ''
) -> None:
    """Wait until something holds; tests have no other deadline."""
    machine.await_true(holds, lambda: f'it does not come true: {what()}')


def act(
    cloud: cloud_module.Cloud, host: str, action: str, what: Any = None
) -> rest.Answer:
    """Have agents do something, as an administrator."""
    path = f'/fairness/{host}/action'
    answer = cloud.admin.ask('POST', 'compute', path, {action: what})
    assert answer.status == 202, answer
    return answer


def set_metric(cloud: cloud_module.Cloud, name: str) -> None:
    """Have all agents begin anew with a metric, and wait until they have."""
    act(cloud, 'all', 'set-metric', {'name': name})
    act(cloud, 'all', 'reset')
    eventually(lambda: metrics(cloud) == dict.fromkeys(cloud.nodes, name))


def use_defaults(cloud: cloud_module.Cloud) -> None:
    """Have all agents begin anew with the metric that ships.

    It is set only where another test chose one: else it is there by itself.
    """
    if metrics(cloud) == dict.fromkeys(cloud.nodes, defaults.METRIC):
        act(cloud, 'all', 'reset')
    else:
        set_metric(cloud, defaults.METRIC)


def metrics(cloud: cloud_module.Cloud) -> Mapping[str, str]:
    """Metric in force by host."""
    found = cloud.admin.get('compute', '/fairness/hosts')
    return {item['name']: item['metric'] for item in found['hosts']}


def curl(
    cloud: cloud_module.Cloud, session: rest.Session, path: str, *more: str
) -> tuple[int, Any]:
    """Ask the HTTP interface as an operator would.

    :param more: arguments of curl.
    :returns: status and body.
    """
    done = subprocess.run(
        cloud.controller.command(
            [
                *('curl', '-sS', '-w', '\n%{http_code}'),
                *('-H', f'X-Auth-Token: {session.token}'),
                *more,
                places.url('compute') + path,
            ]
        ),
        check=True,
        capture_output=True,
        text=True,
    )
    body, _, status = done.stdout.rpartition('\n')
    return int(status), json.loads(body)


def openstack(
    cloud: cloud_module.Cloud,
    *words: str,
    user: str = 'admin',
    scope: Mapping[str, str] | None = None,
) -> Any:
    """Run the openstack command as the administrator or another user.

    :param scope: of the token, as variables of the environment; the user's
        project unless it is given.
    :returns: what it prints, parsed.
    """
    done = typed(cloud, *words, '-f', 'json', user=user, scope=scope)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def typed(
    cloud: cloud_module.Cloud,
    *words: str,
    user: str = 'admin',
    scope: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the openstack command to its end, whatever that is.

    :param scope: as :func:`openstack` takes it.
    """
    scope = scope or {
        'OS_PROJECT_NAME': places.USERS.get(user, user),
        'OS_PROJECT_DOMAIN_ID': 'default',
    }
    environment = machine.environment(
        cloud.venv,
        {
            'OS_AUTH_URL': places.url('identity'),
            'OS_USERNAME': user,
            'OS_PASSWORD': places.PASSWORD,
            'OS_USER_DOMAIN_ID': 'default',
            **scope,
        },
    )
    return subprocess.run(
        cloud.controller.command([f'{cloud.venv}/bin/openstack', *words]),
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )


def shares(cloud: cloud_module.Cloud, server: str) -> int:
    """CPU shares of a server; 0 if it does not run."""
    return cloud.host_of(server).shares_of(server) or 0


def prefers(cloud: cloud_module.Cloud, one: str, other: str) -> bool:
    """Whether the kernel gives one server clearly more than another."""
    more, less = shares(cloud, one), shares(cloud, other)
    return more > DIFFERENT * less > 0


def of_nova(node: compute_node.ComputeNode, server: str) -> int:
    """CPU shares that Nova wants a server to have."""
    found = re.search(r'<shares>(\d+)</shares>', node.xml_of(server))
    if found is not None:
        return int(found[1])
    is_v1 = any('cpu' in item.controllers for item in groups.mounted())
    return 1024 if is_v1 else 100


def as_nova_wants(
    node: compute_node.ComputeNode, servers: Mapping[str, str]
) -> Mapping[str, tuple[int | None, int]]:
    """Servers of a node that have not what Nova wants: has, wants."""
    found = {
        name: (node.shares_of(server), of_nova(node, server))
        for name, server in servers.items()
        if server in node.domains().values()
    }
    return {name: (has, to) for name, (has, to) in found.items() if has != to}


def rounds(node: compute_node.ComputeNode) -> list[Mapping[str, Any]]:
    """Record of a node's rounds."""
    text = (node.directory / 'rounds.jsonl').read_text()
    whole = text[: text.rfind('\n') + 1]
    return [json.loads(line) for line in whole.splitlines()]


def await_rounds(node: compute_node.ComputeNode, count: int) -> None:
    """Wait for some more rounds of a node."""
    wanted = node.rounds() + count
    eventually(
        lambda: node.rounds() >= wanted, lambda: node.said('nova-fairness')
    )


def in_round(done: Mapping[str, Any], server: str) -> Mapping[str, Any] | None:
    """What a round says of a server, if it was there."""
    found = [vm for vm in done['instances'] if vm['uuid'] == server]
    return found[0] if found else None
