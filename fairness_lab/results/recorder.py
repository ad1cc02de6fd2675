# SPDX-License-Identifier: Apache-2.0

"""Write a recording during a run, so that a crash loses nothing."""

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
                name: self._begin_file(name, columns)
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
        """Write ``meta.json``: scenario, machine and time of the run."""
        text = json.dumps(content, indent=2, sort_keys=True) + '\n'
        (self.directory / recording.META).write_text(text)

    def reading(self, row: recording.Reading) -> None:
        """Add a reading of a VM."""
        self._add_row(
            recording.INSTANCES,
            f'{row.t_s:.3f}',
            row.node,
            row.vm,
            row.user,
            _text_or_empty(row.cpu_s),
            _text_or_empty(row.cpu_shares),
            _text_or_empty(row.work),
            row.state,
            *(
                _text_or_empty(row.more.get(name))
                for name in recording.MORE_COLUMNS
            ),
        )

    def fio(self, moved: Mapping[str, Mapping[str, float]]) -> None:
        """Write the bytes that fio moved after the run."""
        text = json.dumps(moved, indent=2, sort_keys=True) + '\n'
        (self.directory / recording.FIO).write_text(text)

    def event(self, row: recording.EventRow) -> None:
        """Add an event of the run."""
        self._add_row(
            recording.EVENTS, f'{row.t_s:.3f}', row.event, row.subject
        )

    def offer(self, row: recording.Offer) -> None:
        """Add the demand that a VM was given."""
        cpu = recording.MAXIMUM if math.isinf(row.cpu) else row.cpu
        self._add_row(recording.OFFERED, f'{row.t_s:.3f}', row.vm, cpu)

    def close(self) -> None:
        """End the recording."""
        with self._lock:
            for stream in self._files.values():
                stream.close()

    def _begin_file(self, name: str, columns: tuple[str, ...]) -> TextIO:
        stream = (self.directory / name).open('w', newline='', buffering=1)
        csv.writer(stream, lineterminator='\n').writerow(columns)
        return stream

    def _add_row(self, name: str, *row: object) -> None:
        with self._lock:
            stream = self._files[name]
            if not stream.closed:
                csv.writer(stream, lineterminator='\n').writerow(row)


def _text_or_empty(value: float | None) -> object:
    return '' if value is None else value
