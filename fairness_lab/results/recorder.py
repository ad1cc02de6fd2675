# SPDX-License-Identifier: Apache-2.0

"""Writes a recording while a run goes on, so that nothing is lost."""

from collections.abc import Mapping
import csv
import json
import math
import pathlib
import threading
from typing import Any
from typing import TextIO

from fairness_lab.results import recording
from nova_fairness import exception


class RunRecorder:
    """The files of one recording; rows go to disk as they come.

    :param directory: is made if need be; must not hold a recording.
    :raises LabError: if it cannot be written or holds something.
    """

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        self._lock = threading.Lock()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            if any(directory.iterdir()):
                raise exception.LabError(
                    f'{directory} is not empty: expected a new directory '
                    'for the results'
                )
            self._files = {
                name: self._begin(name, columns)
                for name, columns in (
                    (
                        recording.INSTANCES,
                        (
                            *recording.INSTANCE_COLUMNS,
                            *recording.MORE_COLUMNS,
                        ),
                    ),
                    (recording.EVENTS, recording.EVENT_COLUMNS),
                    (recording.OFFERED, recording.OFFER_COLUMNS),
                )
            }
        except OSError as error:
            raise exception.LabError(
                f'{directory} cannot be written: {error}'
            ) from None

    def meta(self, content: Mapping[str, Any]) -> None:
        """Write what was run, where and when."""
        text = json.dumps(content, indent=2, sort_keys=True) + '\n'
        (self.directory / recording.META).write_text(text)

    def reading(self, row: recording.Reading) -> None:
        """Add what was read of a VM."""
        self._add(
            recording.INSTANCES,
            f'{row.t_s:.3f}',
            row.node,
            row.vm,
            row.user,
            _maybe(row.cpu_s),
            _maybe(row.cpu_shares),
            _maybe(row.work),
            row.state,
            *(_maybe(row.more.get(name)) for name in recording.MORE_COLUMNS),
        )

    def fio(self, moved: Mapping[str, Mapping[str, float]]) -> None:
        """Write what fio moved after the run."""
        text = json.dumps(moved, indent=2, sort_keys=True) + '\n'
        (self.directory / recording.FIO).write_text(text)

    def event(self, row: recording.EventRow) -> None:
        """Add something that happened."""
        self._add(recording.EVENTS, f'{row.t_s:.3f}', row.event, row.subject)

    def offer(self, row: recording.Offer) -> None:
        """Add what a VM was told to want."""
        cpu = recording.MAXIMUM if math.isinf(row.cpu) else row.cpu
        self._add(recording.OFFERED, f'{row.t_s:.3f}', row.vm, cpu)

    def close(self) -> None:
        """End the recording."""
        with self._lock:
            for stream in self._files.values():
                stream.close()

    def _begin(self, name: str, columns: tuple[str, ...]) -> TextIO:
        stream = (self.directory / name).open('w', newline='', buffering=1)
        csv.writer(stream, lineterminator='\n').writerow(columns)
        return stream

    def _add(self, name: str, *row: object) -> None:
        with self._lock:
            stream = self._files[name]
            if not stream.closed:
                csv.writer(stream, lineterminator='\n').writerow(row)


def _maybe(value: float | None) -> object:
    return '' if value is None else value
