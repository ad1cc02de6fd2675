# SPDX-License-Identifier: Apache-2.0

"""Notices to jobs and servers about how long their host stays available.

The format is machine/job features (HSF-TN-2016-02), which the users of the
partition driver read (Partition Director, INDIGO, section 3.1.1): files in a
directory for each host, and the metadata ``TTL`` of a server.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import pathlib
import re

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster.openstack import clients
from nova_fairness.cluster.openstack import nova
from nova_fairness.model import border

LOG = logging.getLogger(__name__)

_NAME = re.compile('[A-Za-z0-9][A-Za-z0-9._-]*')
_FILES = ('total_cpu', 'shutdowntime')
_READABLE = 0o644
_TTL, _OURS = nova.TTL, nova.TTL_OURS


class DepartureNotices:
    """Writes notices for jobs and servers on hosts that are leaving their
    side.

    :param api: API of Nova.
    :param directory: directory of the files; ``None`` for no files.
    """

    def __init__(
        self, api: clients.Api, directory: pathlib.Path | None = None
    ) -> None:
        self._api = api
        self._directory = directory
        self._told: dict[str, str] | None = None
        self._nova = nova.Nova(api)

    def forget(self) -> None:
        """Forget which metadata is written, so that the next call reads it
        from Nova; another process may have changed it.
        """
        self._told = None

    def tell(self, snapshot: border.Snapshot, now: float) -> list[str]:
        """Write missing feature files and metadata, and remove outdated ones.

        :param snapshot: states of hosts, and the work on them.
        :param now: seconds of the epoch.
        :returns: sentences about failed writes.
        """
        return [
            *self._write_feature_files(snapshot.nodes),
            *self._write_server_metadata(snapshot, now),
        ]

    def _write_feature_files(
        self, nodes: Iterable[border.BorderHost]
    ) -> Iterator[str]:
        if self._directory is None:
            return
        wanted = {node.host.batch: _features(node) for node in nodes}
        try:
            for path in self._directory.iterdir():
                wanted.setdefault(path.name, {})
        except OSError as error:
            yield f'machine features cannot be written: {error}'
            return
        for name, features in wanted.items():
            if not _NAME.fullmatch(name):
                yield f'no directory can be called {name!r}'
                continue
            try:
                _write_host_files(self._directory / name, features)
            except OSError as error:
                yield f'machine features of {name} are not written: {error}'

    def _write_server_metadata(
        self, snapshot: border.Snapshot, now: float
    ) -> Iterator[str]:
        told = self._told
        wanted = _end_times(snapshot)
        try:
            if told is None:
                # Another process may have told servers since this one last
                # read them.
                self._nova = nova.Nova(self._api)
                told = {
                    each.uuid: each.ttl_ours
                    for each in self._nova.servers(now).values()
                    if each.ttl_ours
                }
                self._told = told
        except exception.CloudError as error:
            yield f'servers are not told their time to live: {error}'
            return
        for uuid in sorted(wanted.keys() | told.keys()):
            until = wanted.get(uuid, '')
            if told.get(uuid, '') == until:
                continue
            try:
                self._write_time_to_live(uuid, until)
            except exception.CloudRefused as error:
                named = self._nova.log_name(uuid)
                LOG.warning('server %s is not told: %s', named, error)
            except exception.CloudError as error:
                named = self._nova.log_name(uuid)
                yield f'server {named} is not told its time to live: {error}'
                continue
            told[uuid] = until
            if not until:
                del told[uuid]

    def _write_time_to_live(self, uuid: str, until: str) -> None:
        """Write or delete the time to live of a server; values that its
        owner wrote are not changed.
        """
        server = self._nova.server(uuid)
        if server is None or server.ttl != server.ttl_ours:
            return
        if until:
            self._nova.write_metadata(uuid, {_TTL: until, _OURS: until})
        else:
            self._nova.delete_metadata(uuid, _TTL)
            self._nova.delete_metadata(uuid, _OURS)


def _end_times(snapshot: border.Snapshot) -> Mapping[str, str]:
    """Return the times at which servers must have left their hosts, as
    texts of epoch seconds, by UUID.
    """
    found = {}
    for node in snapshot.nodes:
        place = snapshot.place(node, border.BorderSide.CLOUD)
        if node.state is border.HostState.LEAVING_CLOUD and place:
            for work in place.work:
                if work.cores > 0:
                    found[work.name] = _seconds_text(node.until)
    return found


def _features(node: border.BorderHost) -> Mapping[str, str]:
    features = {'total_cpu': f'{node.host.cores:g}'}
    if node.state in border.LEAVING and node.until is not None:
        features['shutdowntime'] = _seconds_text(node.until)
    return features


def _seconds_text(at: float | None) -> str:
    return '' if at is None else f'{at:.0f}'


def _write_host_files(
    place: pathlib.Path, features: Mapping[str, str]
) -> None:
    """Write or delete the feature files of a host. Readers never read a partly
    written file.

    :raises OSError: if a file cannot be written.
    """
    if features:
        place.mkdir(exist_ok=True)
    for name in _FILES:
        path = place / name
        if name not in features:
            path.unlink(missing_ok=True)
        elif not path.exists() or path.read_text() != features[name]:
            new = path.with_name(f'.{name}.new')
            new.write_text(features[name])
            new.chmod(_READABLE)
            new.replace(path)
    if not features and place.is_dir() and not any(place.iterdir()):
        place.rmdir()
