# SPDX-License-Identifier: Apache-2.0

"""The agent of a laboratory node: its configuration, its process."""

from collections.abc import Iterable
from collections.abc import Mapping
import concurrent.futures
import configparser
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import sysconfig

from fairness_lab.results import recording
from fairness_lab.scenario import values as scenario_module
from fairness_lab.testbed.guests import domain
from fairness_lab.testbed.nodes import far_end
from fairness_lab.testbed.nodes import hub
from fairness_lab.testbed.nodes import node as node_module
from fairness_lab.testbed.nodes import processes
from fairness_lab.testbed.nodes import redis_server
from nova_fairness import exception
from oslo_messaging_zmq.keys import admin
from oslo_messaging_zmq.keys import files

COMMAND = 'nova-fairness'

_MIB = 1 << 20
_PATIENCE_S = 15.0


def configuration(
    scenario: scenario_module.Scenario,
    node: str,
    directory: pathlib.Path,
    keys: pathlib.Path | None = None,
) -> dict[str, dict[str, str]]:
    """Options of a node's agent.

    :param node: its name.
    :param directory: into which the agent records.
    :param keys: directory of its keys; ``None`` lets it talk without.
    :returns: value by option by section.
    """
    result = {
        'fairness': _fairness_options(scenario, node, directory),
        'fairness_node': _node_options(scenario.nodes[node]),
        'fairness_observe': {'prometheus_port': '0'},
    }
    if scenario.redis:
        result.update(_transport_options(scenario, node, keys))
    if scenario.nodes[node].uplink:
        result['fairness_network'] = {
            'layout': 'uplink',
            'uplink': far_end.UPLINK,
        }
    for section, options in scenario.agents.options.items():
        result.setdefault(section, {}).update(options)
    return result


def _fairness_options(
    scenario: scenario_module.Scenario, node: str, directory: pathlib.Path
) -> dict[str, str]:
    fairness = {
        'host': node,
        'metric': scenario.agents.metric,
        'policy': scenario.agents.policy,
        'interval': f'{scenario.interval_s:g}',
        'enforce': 'true',
        'connection_uri': 'qemu:///system',
        'record_path': str(directory / recording.ROUNDS),
    }
    weights = {
        domain.owner_id(f'user {user.name}'): user.weight
        for user in scenario.users.values()
        if user.weight != 1
    }
    if weights:
        fairness['quota_weights'] = ','.join(
            f'{user}:{weight:g}' for user, weight in weights.items()
        )
    ratio = scenario.agents.max_weight_ratio
    if ratio is not None:
        fairness['max_weight_ratio'] = f'{ratio:g}'
    return fairness


def _node_options(spec: scenario_module.NodeSpec) -> dict[str, str]:
    disk = str(spec.disk_mib_s * _MIB)
    return {
        'cpus': ','.join(map(str, spec.cpu_numbers)),
        'disk_read_bandwidth': disk,
        'disk_write_bandwidth': disk,
        'network_bandwidth': str(spec.network_mbit_s * 1e6 / 8),
        'reserved_memory': str(_reserved_memory_mib(spec.memory_mib)),
    }


def _transport_options(
    scenario: scenario_module.Scenario, node: str, keys: pathlib.Path | None
) -> dict[str, dict[str, str]]:
    """Let the agents find each other and talk over the hub."""
    address = hub.node_address(list(scenario.nodes).index(node))
    return {
        'DEFAULT': {'transport_url': redis_server.url()},
        'oslo_messaging_zmq': {
            'bind_address': address,
            'host': address,
            **({'keys_path': str(keys)} if keys else {'insecure': 'true'}),
        },
    }


def _reserved_memory_mib(memory_mib: float) -> int:
    whole = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
    return max(0, whole - int(memory_mib) * _MIB)


def program() -> str:
    """Path of the agent's command.

    :raises LabEnvironmentError: if it is not installed.
    """
    here = [str(pathlib.Path(sys.executable).parent), _scripts()]
    path = shutil.which(COMMAND, path=os.pathsep.join(here))
    path = path or shutil.which(COMMAND)
    if path is None:
        raise exception.LabEnvironmentError(
            f'the command {COMMAND} is not installed beside {sys.executable}'
        )
    return path


def _scripts() -> str:
    return sysconfig.get_path('scripts')


class NodeAgent:
    """The agent of one node; start and stop it as often as needed.

    :param node: on which it runs.
    :param directory: for its configuration, log and record.
    :param options: value by option by section.
    """

    def __init__(
        self,
        node: node_module.TestNode,
        directory: pathlib.Path,
        options: Mapping[str, Mapping[str, str]],
    ) -> None:
        self._node = node
        self._directory = directory
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> pathlib.Path:
        """The log file of the agent."""
        return self._directory / 'agent.log'

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    def rounds(self) -> int:
        """Number of rounds it has recorded, all starts together."""
        try:
            text = (self._directory / recording.ROUNDS).read_bytes()
        except OSError:
            return 0
        return text.count(b'\n')

    def start(self) -> None:
        """Start it and return at once; one that runs is left alone."""
        if self.running:
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        parser = configparser.ConfigParser(interpolation=None)
        parser.read_dict(self._options)
        path = self._directory / 'agent.conf'
        with path.open('w') as stream:
            parser.write(stream)
        with self.log.open('ab') as log:
            self._process = self._node.popen(
                [program(), '--config-file', str(path)],
                stdout=log,
                stderr=log,
            )

    def await_round(self, already: int, patience_s: float) -> None:
        """Wait until it has made a round.

        :param already: how many rounds it had made before.
        :raises LabError: if it ends, or makes none in time; the message
            holds the end of its log.
        """
        processes.wait_until(
            lambda: self.rounds() > already or not self.running, patience_s
        )
        if self.rounds() <= already:
            how = 'made no round' if self.running else 'ended'
            said = self.log.read_text(errors='replace')[-1500:].strip()
            raise exception.LabError(
                f'the agent of node {self._node.name} {how}: '
                f'{said or "it said nothing"}'
            )

    def hold(self) -> None:
        """Stop its process where it is; it keeps what it has."""
        if self._process is not None and self.running:
            self._process.send_signal(signal.SIGSTOP)

    def release(self) -> None:
        """Let a held process go on."""
        if self._process is not None and self.running:
            self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Have it end cleanly."""
        self.release()
        if self._process is not None:
            processes.end(self._process, _PATIENCE_S)

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None and self.running:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()


_KEY_ROLE = 'node'


def make_keys(
    run: pathlib.Path, nodes: Iterable[str]
) -> Mapping[str, pathlib.Path]:
    """Make a key pair for each node, and the list that allows them all.

    :param run: directory of the run.
    :returns: by node the directory that its agent is told of: its own
        secret, and the list.
    :raises KeysError: if they cannot be made.
    """
    names = tuple(nodes)
    made = run / 'keys' / 'all'
    made.parent.mkdir(mode=0o755, exist_ok=True)
    for name in names:
        admin.make(made, name, _KEY_ROLE)
    return {
        name: _create_private_directory(made, run / 'keys', name)
        for name in names
    }


def _create_private_directory(
    made: pathlib.Path, top: pathlib.Path, name: str
) -> pathlib.Path:
    # no node is called like this: a name begins with a letter or digit
    own = top / f'.{name}'
    own.mkdir(mode=0o755)
    for file in (f'{name}{files.SUFFIX}', files.LIST_NAME):
        shutil.copy(made / file, own / file)
    return own


class NodeAgents:
    """Starts, stops and holds agents by the name of their node.

    :param interval_s: of their rounds, seconds.
    """

    def __init__(self, interval_s: float) -> None:
        self._patience_s = 30 + 3 * interval_s
        self._by_node: dict[str, NodeAgent] = {}
        self._restarting = concurrent.futures.ThreadPoolExecutor(4)

    def add(self, name: str, made: NodeAgent) -> None:
        """Take in the agent of a node."""
        self._by_node[name] = made

    def rounds(self, node: str) -> int:
        """Number of rounds that an agent has recorded."""
        return self._by_node[node].rounds()

    def start(self, nodes: Iterable[str], *, wait: bool) -> None:
        """Start agents; with ``wait``, until each has made a round.

        :raises LabError: if one does not.
        """
        chosen = [self._by_node[name] for name in nodes]
        before = [made.rounds() for made in chosen]
        for made in chosen:
            made.start()
        if wait:
            for made, already in zip(chosen, before, strict=True):
                made.await_round(already, self._patience_s)

    def stop(self, nodes: Iterable[str], *, kill: bool) -> None:
        """End agents, cleanly or as a crash would."""
        for name in nodes:
            if kill:
                self._by_node[name].kill()
            else:
                self._by_node[name].stop()

    def restart(self, node: str) -> None:
        """End an agent cleanly, then start it; returns at once."""
        self._restarting.submit(_restart, self._by_node[node])

    def hold(self, nodes: Iterable[str]) -> None:
        """Stop the agents' processes where they are."""
        for name in nodes:
            self._by_node[name].hold()

    def release(self, nodes: Iterable[str]) -> None:
        """Let held agents go on."""
        for name in nodes:
            self._by_node[name].release()

    def close(self) -> None:
        """End all of them cleanly."""
        self._restarting.shutdown(cancel_futures=True)
        for made in self._by_node.values():
            made.stop()


def _restart(made: NodeAgent) -> None:
    made.stop()
    made.start()
