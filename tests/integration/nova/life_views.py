# SPDX-License-Identifier: Apache-2.0

"""What the owner of a server reads of it, held against what Nova says.

A thread asks Nova and the views in turn, another one types commands. What a
view says is right if it is right for one of the states that Nova had from the
look before the last one of the cluster service until the next one: this is how
late a cycle in progress may be, on a machine of any speed.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
import json
import pathlib
import re
import subprocess
import threading
import time
from typing import Any
import uuid as uuid_module

from nova_fairness.cluster.eviction import notice_channels
from tests.fixtures.nova_cloud import cloud as cloud_module
from tests.fixtures.nova_cloud import environment
from tests.fixtures.nova_cloud import hear_notifications
from tests.fixtures.nova_cloud import machine
from tests.fixtures.nova_cloud import places
from tests.integration.nova import rooms
from tests.integration.nova import watching

RECORD = environment.TOP / 'build/life-nova.json'
"""States and statements of the last test, for readers."""

SHOW, LIST = 'server show', 'request list'
TYPED_SHOW, TYPED_LIST = f'openstack {SHOW}', f'openstack {LIST}'
METADATA, NOTIFICATION = 'metadata', 'notification'
ASKED = (SHOW, LIST, TYPED_SHOW, TYPED_LIST)
"""Views that say something in every state."""

WAITS, STARTS, RUNS, ENDED = 'waits', 'starts', 'runs', 'ended'
LEAVES, LEAVES_NOW = 'leaves', 'leaves now'
AWAY, WAITS_SHELVED = 'away', 'waits shelved'
BUILDS, UNSEEN, GONE = 'builds', 'unseen', 'gone'
TOLD, UNTOLD = 'told', 'untold'
"""Whether its metadata say that it leaves."""

WRONG = 'wrong'
"""Nothing that may ever be said."""

_COMES_BACK = r'\((?P<why>.+)\): it is shelved then, and returns by itself'
_SENTENCES = {
    WAITS: r'waits: (1st, )?.+',
    WAITS_SHELVED: r'is shelved and waits for its turn: (1st, )?.+',
    STARTS: r'is being started',
    LEAVES: rf'leaves at (?P<at>\S+ \S+) UTC {_COMES_BACK}',
    LEAVES_NOW: rf'leaves now {_COMES_BACK}',
    AWAY: r'is shelved \((?P<why>.+)\), and returns by itself',
}
_STATUSES = {**_SENTENCES, RUNS: r'runs', ENDED: r'(ended|cancelled): .+'}
_SUMMARIES = {
    **{k: rf'This server {e}\.( .*)?' for k, e in _SENTENCES.items()},
    BUILDS: r'This server is being built: .+',
    GONE: (
        r'Nova deleted this server\. '
        r'Its request \S+ (has ended \(.+\)|also has other servers'
        r'|ends with this server)\.'
    ),
    UNSEEN: r'This server has no measurements yet: .+',
    # As of one that has not left, whatever its agent says of it.
    RUNS: r'(?!This server (waits|leaves|is (being|shelved|stopped))).+',
}
_ORDERS = re.compile(r'(Unshelve|Start) it')
"""What an owner is not to do with a server that returns by itself."""

_STATES = {
    'waiting': {WAITS, WAITS_SHELVED},
    'reserved': {STARTS},
    'sending': {STARTS},
    'starting': {STARTS},
    'active': {RUNS, LEAVES, LEAVES_NOW, AWAY},
    'ended': {ENDED},
    'cancelled': {ENDED},
}
"""Kinds of what is said of a request in each of its states."""

_EVENTS = {
    'fairness.request.waiting': (WAITS, WAITS_SHELVED),
    'fairness.request.released': (STARTS,),
    'fairness.request.active': (RUNS,),
    'fairness.request.ended': (ENDED,),
    'fairness.server.at_risk': (RUNS,),
    'fairness.server.safe': (RUNS, LEAVES),
    'fairness.server.chosen': (LEAVES,),
    'fairness.server.told': (LEAVES,),
    'fairness.server.acting': (LEAVES_NOW,),
    'fairness.server.asked': (LEAVES_NOW,),
    'fairness.server.gone': (AWAY,),
    'fairness.server.returned': (RUNS,),
}


@dataclasses.dataclass(frozen=True)
class Truth:
    """A server as Nova has it.

    :ivar at: when Nova answered, seconds of the epoch.
    :ivar looked_at: when the service had looked last by then.
    :ivar status: '' of one that is gone.
    :ivar leaves_at: by its metadata; '' without.
    :ivar is_new: whether the service has not looked since it was asked for.
    :ivar is_taken: whether another server has its room.
    :ivar is_needed: whether a server waits for its room.
    """

    at: float
    looked_at: float
    status: str
    task: str
    leaves_at: str
    is_new: bool
    is_taken: bool
    is_needed: bool

    def right(self) -> set[str]:
        """Kinds of what is right to say."""
        starts = set() if self.is_taken else {STARTS}
        if not self.status:
            return {ENDED, GONE, UNTOLD}
        if self.status == 'BUILD':
            return {WAITS, UNTOLD, *starts, *[BUILDS] * self.is_new}
        if self.status == 'SHELVED_OFFLOADED':
            return {AWAY, WAITS_SHELVED, TOLD} | starts
        if self.status == 'SHELVED' or self.task.startswith('shelving'):
            return {LEAVES_NOW, TOLD}
        if self.is_needed and self.leaves_at:
            return {LEAVES, TOLD}
        return {RUNS, UNSEEN, UNTOLD}


@dataclasses.dataclass(frozen=True)
class Statement:
    """What a view said.

    :ivar begun: when it was asked, seconds of the epoch.
    :ivar ended: when it answered.
    :ivar kinds: what it may mean; it is right if one of them is.
    :ivar text: as it was said.
    :ivar leaves_at: UTC, as it was said; '' without.
    :ivar why: the server leaves, as it was said; '' without.
    """

    view: str
    begun: float
    ended: float
    kinds: tuple[str, ...]
    text: str
    leaves_at: str = ''
    why: str = ''


_Read = tuple[tuple[str, ...], str, str, str]
"""Kinds, text, when it leaves and why."""


def _read(text: str, patterns: Mapping[str, str]) -> _Read:
    for kind, pattern in patterns.items():
        if found := re.fullmatch(pattern, text, re.DOTALL):
            parts = found.groupdict()
            at = parts.get('at') or ''
            return (kind,), text, at, parts.get('why') or ''
    return (WRONG,), text, '', ''


def _of_summary(text: str) -> _Read:
    """What ``server show`` says."""
    read = _read(text, _SUMMARIES)
    is_order = read[0] != (BUILDS,) and _ORDERS.search(text)
    return ((WRONG,), *read[1:]) if is_order else read


def _of_rows(rows: list[tuple[str, str]]) -> _Read:
    """What a list says: state and status of each row."""
    if not rows:
        return (BUILDS, GONE), 'no row', '', ''
    [(state, status)] = rows if len(rows) == 1 else [('', str(rows))]
    read = _read(status, _STATUSES)
    if {*read[0]} <= _STATES.get(state, set()):
        return read
    return (WRONG,), f'{state}: {status}', '', ''


def _of_metadata(found: Mapping[str, str]) -> _Read:
    said = {key: found[key] for key in _LEAVES if key in found}
    if not said:
        return (UNTOLD,), '', '', ''
    is_whole = said.keys() == {*_LEAVES} and said[_BY] == 'shelve'
    at, why = (said.get(key, '') for key in (_AT, _WHY))
    return (TOLD if is_whole else WRONG,), json.dumps(said), at, why


_AT, _BY, _WHY = _LEAVES = (
    notice_channels.LEAVES_AT,
    notice_channels.LEAVES_BY,
    notice_channels.LEAVES_WHY,
)


class LifeViews:
    """All that is said of a server from when it is asked for until it is gone.

    :param cloud: where it is.
    :param user: its owner.
    :param name: of the server.
    :param uuid: of the server.
    :param before: UUID of the server that has its room first.
    :param heard: file of notifications.
    :ivar needs: UUID of the server that is to have its room; '' before.
    """

    def __init__(
        self,
        cloud: cloud_module.Cloud,
        user: str,
        name: str,
        uuid: str,
        before: str,
        heard: pathlib.Path,
    ) -> None:
        self.needs = ''
        self._asked_at = time.time()
        self._cloud, self._user, self._name = cloud, user, name
        self._uuid, self._before, self._heard = uuid, before, heard
        self._truths: list[Truth] = []
        self._said: list[Statement] = []
        self._failed: list[BaseException] = []
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=(look,))
            for look in (self._look, self._type)
        ]

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Look all the time meanwhile, and write down what was seen."""
        for each in self._threads:
            each.start()
        try:
            yield
        finally:
            self._ended.set()
            for each in self._threads:
                each.join()
            self._record()

    def await_said(self, *kinds: str, since: float = 0.0) -> None:
        """Wait until all views that are asked have said something.

        :param since: seconds of the epoch.
        """

        def missing() -> set[str]:
            assert not self._failed, self._failed
            return set(ASKED) - {
                each.view
                for each in list(self._said)
                if {*kinds} & {*each.kinds} and each.begun >= since
            }

        watching.eventually(
            lambda: not missing(),
            lambda: (kinds, missing(), self._said[-6:], self.wrong()),
        )

    def wrong(self) -> list[tuple[Statement, list[Truth]]]:
        """What was never right, and the states at that time."""
        found = []
        for each in [*self._said, *self.notified()]:
            meant = self._meant(each)
            if not any(_is_right(each, truth, meant) for truth in meant):
                found.append((each, meant))
        return found

    def notified(self) -> list[Statement]:
        """Notifications about the server, as they came."""
        lines = self._heard.read_text().splitlines()
        told = [json.loads(line) for line in lines]
        return [
            _notification(each['event'], each['payload'])
            for each in told
            if self._is_about(each['payload'])
        ]

    def whys(self) -> set[str]:
        """All words by which it was said why it leaves."""
        return {e.why for e in [*self._said, *self.notified()] if e.why}

    def _is_about(self, payload: Mapping[str, Any]) -> bool:
        return self._uuid in (
            payload.get('server'),
            *payload.get('servers', ()),
        )

    def _meant(self, said: Statement) -> list[Truth]:
        """States that a statement can be about."""
        looks = sorted(
            {e.looked_at for e in self._truths if e.at <= said.begun}
        )
        # The cycle of the last look may still be at work on what it saw.
        since = looks[-2] if looks[1:] else 0.0
        found = []
        for each in self._truths:
            if each.at >= since:
                found.append(each)
            if each.looked_at > said.ended:
                break
        return found

    def _repeat(self, look: Any) -> None:
        try:
            while not self._ended.wait(0.1):
                look()
        except BaseException as error:
            self._failed.append(error)

    def _look(self) -> None:
        """Ask Nova, and all views that are cheap."""
        self._truths.append(self._truth())
        owner = self._cloud.users[self._user]
        self._say(SHOW, self._show, owner)
        self._say(LIST, self._list, owner)
        self._say(METADATA, self._metadata, owner)

    def _say(self, view: str, ask: Any, *arguments: Any) -> None:
        begun = time.time()
        if read := ask(*arguments):
            self._said.append(Statement(view, begun, time.time(), *read))

    def _truth(self) -> Truth:
        # First: what is said later may be newer.
        looked = self._cloud.capacity()['seen_at']
        looked_at = rooms.seconds(looked)
        found = self._server(self._uuid)
        needs = self._server(self.needs)
        has_room = [self._server(self._before), needs]
        return Truth(
            time.time(),
            looked_at,
            found.get('status', ''),
            found.get('OS-EXT-STS:task_state') or '',
            found.get('metadata', {}).get(_AT, ''),
            looked_at <= self._asked_at,
            any(each.get('OS-EXT-SRV-ATTR:host') for each in has_room),
            bool(needs) and not needs['OS-EXT-SRV-ATTR:host'],
        )

    def _server(self, uuid: str) -> dict[str, Any]:
        if not uuid:
            return {}
        answer = self._cloud.admin.ask('GET', 'compute', f'/servers/{uuid}')
        assert answer.status in (200, 404), answer
        return answer.body['server'] if answer.status == 200 else {}

    def _show(self, owner: Any) -> _Read | None:
        path = f'/fairness/instances/{self._uuid}'
        answer = owner.ask('GET', 'compute', path)
        if answer.status == 404:
            return (GONE,), '404', '', ''
        if answer.status == 503:
            # The agent is late on a busy machine: it says nothing.
            return None
        assert answer.status == 200, answer
        return _of_summary(answer.body['instance']['summary'])

    def _list(self, owner: Any) -> _Read:
        path = f'/fairness/requests?server={self._uuid}'
        found = owner.get('compute', path)['requests']
        rows = [(each['state'], each['status']) for each in found]
        if not rows:
            ended = owner.get('compute', f'{path}&ended=true')['requests']
            rows = [(each['state'], each['status']) for each in ended][-1:]
        return _of_rows(rows)

    def _metadata(self, owner: Any) -> _Read:
        answer = owner.ask('GET', 'compute', f'/servers/{self._uuid}')
        if answer.status == 404:
            return (GONE,), '404', '', ''
        return _of_metadata(answer.body['server']['metadata'])

    def _type(self) -> None:
        """Type both commands as the owner does."""
        self._say(TYPED_SHOW, self._typed_show)
        self._say(TYPED_LIST, self._typed_list)

    def _typed_show(self) -> _Read | None:
        done = self._typed('server', 'show', self._name)
        if 'do not answer' in done.stderr:
            return None
        if done.returncode:
            return (GONE,), done.stderr, '', ''
        return _of_summary(_text(json.loads(done.stdout)['summary']))

    def _typed_list(self) -> _Read:
        words = ('request', 'list', '--name', self._uuid, '--ended')
        done = self._typed(*words)
        if done.returncode:
            return (GONE,), done.stderr, '', ''
        rows = [(e['State'], e['Status']) for e in json.loads(done.stdout)]
        return _of_rows([e for e in rows if e[0] != 'ended'] or rows[-1:])

    def _typed(self, *words: str) -> subprocess.CompletedProcess[str]:
        return watching.typed(
            self._cloud, 'fairness', *words, '-f', 'json', user=self._user
        )

    def _record(self) -> None:
        said = [*self._said, *self.notified()]
        lines = [
            *(
                ('Nova', each.at, dataclasses.asdict(each), [])
                for each in self._truths
            ),
            *((e.view, e.ended, e.text, list(e.kinds)) for e in said),
        ]
        lines.sort(key=lambda each: each[1])
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text('\n'.join(map(json.dumps, lines)) + '\n')


def _text(said: Any) -> str:
    return said if isinstance(said, str) else ' '.join(said)


def _notification(event: str, payload: Mapping[str, Any]) -> Statement:
    at = rooms.seconds(payload['at'])
    is_leave = event in _LEAVING
    return Statement(
        NOTIFICATION,
        at,
        # It is told to the second.
        at + 1,
        _EVENTS.get(event, (WRONG,)),
        event,
        payload.get('leaves_at') or '' if is_leave else '',
        payload['explanation'] if is_leave else '',
    )


def _is_right(said: Statement, truth: Truth, meant: list[Truth]) -> bool:
    if not truth.right().intersection(said.kinds):
        return False
    if not said.leaves_at or not truth.leaves_at:
        return True
    # Some views say it to the minute; it is put off until it is told.
    late_s = meant[-1].at - meant[0].at
    told = rooms.seconds(truth.leaves_at) - _seconds(said.leaves_at)
    return -late_s <= told < 60 + late_s


def _seconds(said: str) -> float:
    """A moment that a view says, which is UTC."""
    return rooms.seconds(said if said[10] == 'T' else f'{said}+00:00')


_LEAVING = frozenset(
    f'fairness.server.{state}' for state in ('chosen', 'told', 'acting')
)


@contextlib.contextmanager
def heard(cloud: cloud_module.Cloud) -> Iterator[pathlib.Path]:
    """The file of notifications that come meanwhile."""
    path = cloud.controller.directory / f'heard-{uuid_module.uuid4()}.jsonl'
    program = pathlib.Path(hear_notifications.__file__)
    listening = cloud.controller.popen(
        program.stem,
        [
            *(f'{cloud.venv}/bin/python', '-P', str(program)),
            *(places.broker_url(), str(path)),
        ],
        env=machine.environment(cloud.venv),
    )
    try:
        watching.eventually(
            path.exists, lambda: cloud.controller.said(program.stem)
        )
        yield path
    finally:
        listening.kill()
        listening.wait()
