# SPDX-License-Identifier: Apache-2.0

"""Tables of results as data frames of pandas."""

from collections.abc import Mapping
import dataclasses
import pathlib
from typing import Any

from fairness_lab.measures import files
from nova_fairness import exception

RUN = 'run'
"""Column with the name of the run to which a row belongs."""


@dataclasses.dataclass(frozen=True)
class LoadedResult:
    """Settings and tables of one or several runs.

    :ivar settings: content of each ``result.json``, by name of the run.
    :ivar tables: ``pandas.DataFrame`` by name of the table, such as
        ``users``. Tables of runs have the rows of all runs; their first column
        ``run`` has the name of the run.
    """

    settings: Mapping[str, Mapping[str, Any]]
    tables: Mapping[str, Any]


def load(directory: str | pathlib.Path) -> LoadedResult:
    """Read what ``nova-fairness-sim`` wrote to a directory.

    A run has the name of its directory. If there are several, it has the path
    of its directory below ``runs``, such as
    ``chain/DominantShareMetric/foresight``.

    :param directory: argument of ``--out``.
    :raises SimError: if the directory contains no run, if a file cannot be
        read, or if a package is missing.
    """
    top = pathlib.Path(directory).absolute()
    runs = _runs_by_name(top)
    if not runs:
        raise exception.SimError(
            f'directory {top}: no {files.RESULT} found; expected a directory'
            ' that nova-fairness-sim wrote (--out)'
        )
    pandas = _import_pandas()
    frames: dict[str, list[Any]] = {}
    for name, run in runs.items():
        for path in _tables_in(run):
            frame = _read_table(pandas, path)
            frame.insert(0, RUN, name)
            frames.setdefault(path.stem, []).append(frame)
    tables = {
        name: pandas.concat(parts, ignore_index=True)
        for name, parts in sorted(frames.items())
    }
    if top not in runs.values():
        of_all = {path.stem: path for path in _tables_in(top)}
        tables |= {
            name: _read_table(pandas, path) for name, path in of_all.items()
        }
    settings = {
        name: files.read_json(run / files.RESULT) for name, run in runs.items()
    }
    return LoadedResult(settings, tables)


def _runs_by_name(top: pathlib.Path) -> dict[str, pathlib.Path]:
    if (top / files.RESULT).is_file():
        return {top.name: top}
    found = sorted(path.parent for path in top.rglob(files.RESULT))
    return {
        path.relative_to(top).as_posix().removeprefix('runs/'): path
        for path in found
    }


def _tables_in(directory: pathlib.Path) -> list[pathlib.Path]:
    suffixes = {f'.{kind}' for kind in files.TABLES}
    return sorted(
        path for path in directory.iterdir() if path.suffix in suffixes
    )


def _import_pandas() -> Any:
    try:
        import pandas as pd  # an extra, for notebooks
    except ImportError:
        raise exception.SimError(
            'package pandas: not installed; pip install'
            ' nova-fairness[notebook]'
        ) from None
    return pd


def _read_table(pandas: Any, path: pathlib.Path) -> Any:
    """Return a table of a file.

    :raises SimError: if the file cannot be read.
    """
    is_csv = path.suffix == '.csv'
    read = pandas.read_csv if is_csv else pandas.read_parquet
    try:
        return read(path)
    except ImportError as error:
        raise exception.SimError(
            f'table {path}: cannot be read: {error}; pip install'
            ' nova-fairness[parquet]'
        ) from error
    except (OSError, ValueError) as error:
        raise exception.SimError(
            f'table {path}: cannot be read: {error}; run the simulation again'
        ) from error
