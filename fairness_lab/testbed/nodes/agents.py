# SPDX-License-Identifier: Apache-2.0

"""The agents of all nodes of a run."""

from collections.abc import Iterable
import concurrent.futures

from fairness_lab.testbed.nodes import agent


class Agents:
    """Starts, stops and holds agents by the name of their node.

    :param interval_s: of their rounds, seconds.
    """

    def __init__(self, interval_s: float) -> None:
        self._patience_s = 30 + 3 * interval_s
        self._by_node: dict[str, agent.NodeAgent] = {}
        self._restarting = concurrent.futures.ThreadPoolExecutor(4)

    def add(self, name: str, made: agent.NodeAgent) -> None:
        """Take in the agent of a node."""
        self._by_node[name] = made

    def rounds(self, node: str) -> int:
        """Give the number of rounds that an agent has recorded."""
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


def _restart(made: agent.NodeAgent) -> None:
    made.stop()
    made.start()
