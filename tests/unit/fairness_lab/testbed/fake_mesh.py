# SPDX-License-Identifier: Apache-2.0

"""Simulated exchange: who hears whom, and how agents find each other.

Agents learn of each other through Redis and then talk without it. Nothing
here takes time, and nothing is lost but what the scenario takes away.
"""

from nova_fairness.model import report as report_module

VIEW_AGE = 3.0
"""Intervals after which a report that was not renewed is left out."""

_ROUNDING_S = 1e-6


class FakeRedis:
    """A registry of addresses that can go away and forget."""

    def __init__(self) -> None:
        self.lives: dict[str, int] = {}
        self._up = True
        self._frozen = False

    @property
    def answers(self) -> bool:
        """Whether it can be asked."""
        return self._up and not self._frozen

    def start(self) -> None:
        """Start it, empty."""
        self._up = True

    def kill(self) -> None:
        """End it as a crash would."""
        self.lives.clear()
        self._up = self._frozen = False

    def freeze(self) -> None:
        """Let it answer nothing more."""
        self._frozen = True

    def thaw(self) -> None:
        """Let it go on."""
        self._frozen = False

    def flush(self) -> None:
        """Have it forget everything."""
        self.lives.clear()


class FakeMesh:
    """What every agent knows and hears of the others.

    An agent that starts anew has another address, for which its number of
    lives stands: who knows an old one reaches nobody.
    """

    def __init__(self) -> None:
        self.redis = FakeRedis()
        self.cut: set[str] = set()
        self._lives: dict[str, int] = {}
        self._known: dict[str, dict[str, int]] = {}
        self._heard: dict[
            str, dict[str, tuple[report_module.NodeReport, float]]
        ] = {}

    def join(self, host: str) -> None:
        """Let an agent begin; it knows nobody."""
        self._lives[host] = self._lives.get(host, 0) + 1
        self._known[host] = {}
        self._heard[host] = {}

    def leave(self, host: str) -> None:
        """Let an agent end."""
        self._known.pop(host, None)
        self._heard.pop(host, None)

    def publish(self, report: report_module.NodeReport, now_s: float) -> None:
        """Send a report to all whom its sender knows and reaches."""
        self._meet()
        sender = report.host
        self._heard[sender][sender] = (report, now_s)
        for host, life in self._known[sender].items():
            present = host in self._known and self._lives[host] == life
            if present and not self.cut & {sender, host}:
                self._heard[host][sender] = (report, now_s)

    def view(self, host: str, now_s: float) -> report_module.View:
        """What an agent knows: its own report, and those not too old."""
        newest = {
            sender: (report, now_s - heard_s)
            for sender, (report, heard_s) in sorted(self._heard[host].items())
        }
        fresh = {
            sender
            for sender, (report, age_s) in newest.items()
            if sender == host
            or age_s <= VIEW_AGE * report.interval_s + _ROUNDING_S
        }
        return report_module.View(
            {s: report for s, (report, _) in newest.items() if s in fresh},
            {s: age_s for s, (_, age_s) in newest.items() if s in fresh},
            {s: 'silent' for s in newest if s not in fresh},
        )

    def _meet(self) -> None:
        """Let all who reach Redis register and look each other up."""
        if not self.redis.answers:
            return
        present = self._known.keys() - self.cut
        self.redis.lives.update((host, self._lives[host]) for host in present)
        for host in present:
            self._known[host].update(
                (other, life)
                for other, life in self.redis.lives.items()
                if other != host
            )
