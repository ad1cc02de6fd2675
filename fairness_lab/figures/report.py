# SPDX-License-Identifier: Apache-2.0

"""The files that a run leaves for people and programs."""

from collections.abc import Iterator
from collections.abc import Mapping
import json
import os
import pathlib
import tempfile
from typing import Any

from fairness_lab.figures import panel
from fairness_lab.figures import runs
from fairness_lab.results import checks
from fairness_lab.results import recording
from fairness_lab.results import result as result_module
from fairness_lab.results import series
from fairness_lab.results import timeline
from nova_fairness import exception

RESULT = 'result.json'
SERIES = 'series.csv'
PICTURE = 'run.png'
DISK_PICTURE = 'disk.png'
NETWORK_PICTURE = 'network.png'

Result = Mapping[str, Any]


def write(recording_dir: pathlib.Path, out_dir: pathlib.Path) -> pathlib.Path:
    """Evaluate a recording and write table, series and picture.

    ``result.json`` comes last, so that where it is, everything is.

    :param recording_dir: what a run left behind.
    :param out_dir: is made if need be; may be the recording itself.
    :returns: the path of ``result.json``.
    :raises LabError: if the recording cannot be used or nothing written.
    """
    recorded = recording.read(recording_dir)
    result = result_module.build(recorded)
    expected = map(
        checks.from_json, recorded.meta['scenario'].get('expect', ())
    )
    result['checks'] = [
        item.to_json() for item in checks.evaluate(result, expected)
    ]
    line = timeline.Timeline(recorded)
    side = panel.PanelSide(
        headline(result), result, tuple(series.points(line))
    )
    picture = runs.run(side)
    if result['disk']:
        write_atomically(out_dir / DISK_PICTURE, runs.disks(side))
    if result['network']:
        write_atomically(out_dir / NETWORK_PICTURE, runs.network(side))
    path = out_dir / RESULT
    write_atomically(out_dir / SERIES, series.to_csv(line).encode())
    write_atomically(out_dir / PICTURE, picture)
    write_atomically(path, to_json(result))
    return path


def to_json(content: Mapping[str, Any]) -> bytes:
    """Bytes of a JSON file that people can read, too."""
    return (json.dumps(content, indent=1, allow_nan=False) + '\n').encode()


def write_atomically(path: pathlib.Path, content: bytes) -> None:
    """Write a file whole or not at all.

    :raises LabError: if it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        number, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    except OSError as error:
        raise exception.LabError(
            f'{path} cannot be written: {error}'
        ) from None
    new = pathlib.Path(name)
    try:
        with os.fdopen(number, 'wb') as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        new.chmod(0o644)
        new.replace(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise exception.LabError(
            f'{path} cannot be written: {error}'
        ) from None


def load(directory: pathlib.Path) -> dict[str, Any]:
    """Read the result of a run.

    :raises LabError: if the directory has none, or one of another version.
    """
    path = directory / RESULT
    try:
        content = json.loads(path.read_text())
    except FileNotFoundError:
        raise exception.LabError(
            f'{directory} holds no result of nova-fairness-lab: '
            f'it has no {RESULT}'
        ) from None
    except (OSError, ValueError) as error:
        raise exception.LabError(f'{path} cannot be read: {error}') from None
    version = content.get('version') if isinstance(content, dict) else None
    if version != result_module.VERSION:
        raise exception.LabError(
            f'{path}: expected version {result_module.VERSION} of the '
            f'format, got {version!r}'
        )
    return dict(content)


def has_passed(result: Result) -> bool:
    """Whether every check of a result passed."""
    return all(item['passed'] for item in result['checks'])


def table(result: Result) -> str:
    """Result for the terminal: users, VMs, fairness, checks."""
    return '\n'.join(_table_lines(result)) + '\n'


def headline(result: Result) -> str:
    """Say in one line what was run."""
    if not result['agents']:
        how = 'without agents'
    else:
        how = (
            f'with agents: {result["metric"]}, {result["policy"]}, '
            f'{result["rounds"]} rounds of {result["interval_s"]:g} s'
        )
    return f'{result["scenario"]} ({result["backend"]}) {how}'


def _table_lines(result: Result) -> Iterator[str]:
    window = result['window']
    yield headline(result)
    yield (
        f'CPU from {window["from_s"]:g} to {window["to_s"]:g} s, '
        'parts of what all VMs got'
    )
    yield ''
    yield f'{"":16}{"got":>9}{"fair":>9}{"weight":>9}'
    for name, user in sorted(result['users'].items()):
        yield f'{name:16}{_percent_text(user["cpu_share"])}' + _percent_text(
            user['max_min_share']
        )
        for vm_name, vm in sorted(result['instances'].items()):
            if vm['user'] == name:
                yield _vm_line(vm_name, vm)
    yield ''
    index = result['jain']['cpu']
    yield f"Jain's index of the users: {value_text(index)}"
    yield from _reference_lines(result)
    yield from _check_lines(result)


def _vm_line(name: str, vm: Mapping[str, Any]) -> str:
    weights = vm['weights'].get('cpu') or [None]
    return (
        f'  {name:14}{_percent_text(vm["cpu_share"])}'
        f'{_percent_text(vm["max_min_share"])}{value_text(weights[-1]):>9}'
    )


def _percent_text(value: float) -> str:
    return f'{100 * value:7.1f} %'


def value_text(value: float | None) -> str:
    """Measured number as it is shown."""
    return '-' if value is None else f'{value:.3g}'


def _reference_lines(result: Result) -> Iterator[str]:
    found = result['uncontended']
    if not found:
        return
    low, high = found['confidence_95'] or (None, None)
    ends = '' if low is None else f', 95 %: {low:+.2%} to {high:+.2%}'
    yield (
        f'Work with the agent: {found["mean_difference"]:+.2%} '
        f'({len(found["pairs"])} pairs{ends})'
    )


def _check_lines(result: Result) -> Iterator[str]:
    if not result['checks']:
        return
    yield ''
    for item in result['checks']:
        mark = 'pass' if item['passed'] else 'FAIL'
        yield (
            f'{mark}  {value_text(item["measured"]):>8}  '
            f'{bounds_text(item):18} {item["says"]}'
        )


def bounds_text(item: Mapping[str, Any]) -> str:
    """Say what a check, as the result has it, asks of a number."""
    low, high = item['lowest'], item['highest']
    if low is None:
        return f'<= {value_text(high)}'
    if high is None:
        return f'>= {value_text(low)}'
    return f'{value_text(low)} .. {value_text(high)}'
