# SPDX-License-Identifier: Apache-2.0

"""The cloud as devstack finds it, and what devstack's scripts do with it.

Its hosts are the controller, which has nova-api, and the compute nodes. Nova
is the cloud's; the cloud's own agents, and the filter of its nova-api, make
room for those of the plugin.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import functools
import pathlib
import re
import shutil

from fairness_lab.testbed.nodes import hub
from nova_fairness.apply import privileged_client
from tests.fixtures import devstack_host
from tests.fixtures.nova_cloud import cloud as cloud_module
from tests.fixtures.nova_cloud import compute_node
from tests.fixtures.nova_cloud import control_plane
from tests.fixtures.nova_cloud import places
from tests.integration.nova import watching

CONFIGURE = ('pre-install', 'install', 'post-config')
INTERVAL_S = 1
"""Of the agents' rounds."""

BY_ROOTWRAP = cloud_module.NODES[0]
"""Where rootwrap starts the agent's helpers, as for one that is not root."""

Host = devstack_host.DevstackHost


class StackedCloud:
    """The cloud, set up by the plugin.

    :param cloud: whose agents do not run.
    :ivar nodes: hosts by name.
    """

    def __init__(self, cloud: cloud_module.Cloud) -> None:
        self.cloud = cloud
        self.controller = _controller(cloud)
        self.nodes: Mapping[str, Host] = {
            name: _node(cloud, node, self.controller)
            for name, node in cloud.nodes.items()
        }

    @property
    def hosts(self) -> tuple[Host, ...]:
        """The controller and the nodes."""
        return (self.controller, *self.nodes.values())

    def stack(self) -> None:
        """Run all phases where Nova runs already with what they configure."""
        self.configure()
        self.start()

    def configure(self) -> None:
        """Run the phases before Nova starts.

        The controller comes first: it makes the keys of all.
        """
        self.controller.stack(*CONFIGURE)
        self._on_nodes(lambda host: host.stack(*CONFIGURE))

    def start_nova(self) -> None:
        """Start nova-api and nova-compute anew, as devstack does then."""
        control_plane.run_in_parallel(
            functools.partial(
                self.cloud.plane.restart_api, self.controller.nova
            ),
            *(node.restart_compute for node in self.cloud.nodes.values()),
        )

    def start(self) -> None:
        """Run the phase after Nova was started."""
        self.controller.stack('extra')
        self._on_nodes(lambda host: host.stack('extra'))

    def destroy(self) -> None:
        """Run what ``unstack.sh`` and ``clean.sh`` run, everywhere."""
        self._on_nodes(Host.destroy)
        self.controller.destroy()

    def unstack(self) -> None:
        """Stop what the plugin started, whatever came of it."""
        for host in reversed(self.hosts):
            host.run('unstack')

    def remove(self) -> None:
        """Remove all files, Nova's and the plugin's."""
        for host in self.hosts:
            shutil.rmtree(host.place)

    def files(self) -> devstack_host.Files:
        """All that is configured, Nova's and ours."""
        found = {
            path: text
            for host in self.hosts
            for path, text in host.files().items()
        }
        for node in self.cloud.nodes.values():
            path = node.compute_conf
            found[str(path)] = (path.read_bytes(), path.stat().st_mode)
        return found

    def pids(self) -> Mapping[tuple[str, str], int]:
        """Main process of each service, by host and name."""
        hosts = {'controller': self.controller, **self.nodes}
        return {
            (name, service): pid
            for name, host in hosts.items()
            for service, pid in host.pids().items()
        }

    def processes(self) -> list[int]:
        """What the plugin started, and what that started."""
        return [pid for host in self.hosts for pid in host.processes()]

    def said(self) -> str:
        """Ends of what services said."""
        return '\n'.join(
            f'{service}: {host.said(service)[-2000:]}'
            for host in self.hosts
            for service in host.pids()
        )

    def _on_nodes(self, task: Callable[[Host], object]) -> None:
        control_plane.run_in_parallel(
            *(functools.partial(task, host) for host in self.nodes.values())
        )


@contextlib.contextmanager
def taken_over(cloud: cloud_module.Cloud) -> Iterator[StackedCloud]:
    """Have the cloud without its agents; it is as before afterwards.

    :param cloud: where each user has a server.
    """
    made = StackedCloud(cloud)
    with contextlib.ExitStack() as back:
        back.callback(_await_agents, cloud)
        for node in cloud.nodes.values():
            node.stop_agent()
            back.callback(node.start_agent)
        back.callback(made.remove)
        back.callback(cloud.plane.restart_api)
        back.callback(made.unstack)
        yield made


def _await_agents(cloud: cloud_module.Cloud) -> None:
    """Wait until the cloud's agents know again what they did before."""
    cloud.await_up()
    owners = {session.user for session in cloud.users.values()}
    watching.eventually(
        lambda: (
            answering(cloud) == set(cloud.nodes)
            and owners <= _known_users(cloud)
        ),
        lambda: (answering(cloud), _known_users(cloud)),
    )


def answering(cloud: cloud_module.Cloud) -> set[str]:
    """Hosts that answer, as nova-api says; none if one does not."""
    answer = cloud.admin.ask('GET', 'compute', '/fairness/hosts')
    if answer.status != 200 or answer.body['partial']:
        return set()
    return {item['name'] for item in answer.body['hosts']}


def _known_users(cloud: cloud_module.Cloud) -> set[str]:
    answer = cloud.admin.ask('GET', 'compute', '/fairness/users')
    if answer.status != 200 or answer.body['partial']:
        return set()
    return {item['id'] for item in answer.body['users']}


def _controller(cloud: cloud_module.Cloud) -> Host:
    host = devstack_host.DevstackHost(
        cloud.controller.directory / 'stack',
        cloud.venv,
        {
            'ENABLED_SERVICES': 'n-api,n-cond,n-sch',
            'HOST_IP': places.ADDRESS,
            'SERVICE_HOST': places.ADDRESS,
            'FAIRNESS_NODES': ' '.join(cloud.nodes),
        },
        inside=cloud.controller.command,
        logs=cloud.controller.logs,
    )
    cloud.plane.configure_plain(host.nova)
    # Nobody is to be judged by how busy the machine is.
    with (host.nova / 'nova.conf').open('a') as file:
        file.write('\n[fairness_api]\nrpc_timeout = 60\n')
    _configure_rootwrap(cloud.venv, host.nova)
    return host


def _node(
    cloud: cloud_module.Cloud,
    node: compute_node.ComputeNode,
    controller: Host,
) -> Host:
    place = node.directory / 'stack'
    post_config = {'fairness': {'metric_deadline': '60'}}
    if node.name == BY_ROOTWRAP:
        post_config['nova_fairness_privileged'] = {
            'helper_command': f'{cloud.venv}/bin/nova-rootwrap '
            f'{place}/nova/rootwrap.conf {privileged_client.PROGRAM}'
        }
    host = devstack_host.DevstackHost(
        place,
        cloud.venv,
        {
            'ENABLED_SERVICES': 'n-cpu,placement-client',
            'HOST_IP': hub.node_address(node.index),
            'SERVICE_HOST': places.ADDRESS,
            'NOVA_CONF': node.compute_conf,
            'NOVA_CPU_CONF': node.compute_conf,
            'FAIRNESS_KEYS_FROM': controller.conf / 'all-keys',
            'FAIRNESS_NOVA_SERVICE': 'on',
            'FAIRNESS_INTERVAL': INTERVAL_S,
        },
        post_config,
        inside=node.node.command,
        logs=node.directory,
    )
    _configure_rootwrap(cloud.venv, host.nova)
    return host


def _configure_rootwrap(venv: pathlib.Path, directory: pathlib.Path) -> None:
    """Have rootwrap configured as devstack does it for Nova."""
    given = venv / 'etc' / 'nova'
    shutil.copytree(given / 'rootwrap.d', directory / 'rootwrap.d')
    text = (given / 'rootwrap.conf').read_text()
    for line, instead in (
        (r'filters_path=.*', f'filters_path={directory}/rootwrap.d'),
        (r'(exec_dirs=.*)', r'#\1'),
    ):
        text, count = re.subn(f'^{line}$', instead, text, flags=re.MULTILINE)
        assert count == 1, (line, text)
    (directory / 'rootwrap.conf').write_text(text)
