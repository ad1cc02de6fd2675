# SPDX-License-Identifier: Apache-2.0

"""What is fuzzed: each takes any bytes and says by an exception what broke.

They know nothing of the fuzzer, so that a test can replay its findings.
"""

import logging
import math
import pathlib

import msgpack
import numpy as np

from nova_fairness import exception
from nova_fairness.exchange import codec as codec_module
from nova_fairness.exchange import desired
from nova_fairness.exchange import desired_state
from nova_fairness.exchange import desired_store
from nova_fairness.exchange import intake
from nova_fairness.exchange import ledger as ledger_module
from nova_fairness.exchange import limits
from nova_fairness.model import report
from nova_fairness.runtime import quiet_log
from oslo_messaging_zmq import errors
from oslo_messaging_zmq import messages as messages_module

LIMITS = limits.Bounds(max_users=8, max_total_users=20, max_peers=3)
MOST_BYTES = 4096
_MOST_MESSAGES = 12


def codec(content: bytes) -> None:
    """Read messages as a node does, one after the other, and keep them.

    :param content: msgpack objects in a row.
    """
    ledger = ledger_module.ReportLedger('me', 'boot', LIMITS)
    times: list[float] = [0.0]
    other = _intake(times)
    for number, message in enumerate(_messages(content)):
        now_s = times[0] = float(number)
        try:
            head = codec_module.parse_head(message)
            before = ledger.static_content(head, now_s)
            got = codec_module.decode(message, LIMITS, before)
            ledger.accept(got.report, now_s, got.lasting)
        except exception.ReportRefused as error:
            _check_text(error)
            host = codec_module.claimed_host(message)
            ledger.refused(host, str(error), now_s)
        else:
            _check_report(got)
        _check_ledger(ledger, now_s)
        other.received({}, message)
        # Some are read one by one, some together.
        if number % 3 == 2:
            _check_alike(ledger, other, now_s)
    _check_alike(ledger, other, times[0])


def messages(content: bytes) -> None:
    """Read a message of the driver; what was read can be written again."""
    for read, write in (
        (messages_module.decode_request, messages_module.encode_request),
        (messages_module.decode_answer, messages_module.encode_answer),
    ):
        try:
            got = read(content, MOST_BYTES)
        except errors.BadMessage as error:
            _check_text(error)
            continue
        try:
            again = write(got, 100 * MOST_BYTES)
        except errors.UnsendableMessage:
            continue
        assert _alike(read(again, 100 * MOST_BYTES), got)
        _receive(got)


def _receive(got: object) -> None:
    """Hand a report that came over the wire to its reader."""
    if isinstance(got, messages_module.RequestMessage):
        arguments = got.message.get('args')
        if isinstance(arguments, dict):
            try:
                codec_module.decode(arguments.get('report'), LIMITS)
            except exception.ReportRefused:
                return


def _intake(times: list[float]) -> intake.Intake:
    """Make what postpones reading numbers, as nodes do."""

    def clock() -> float:
        return times[0]

    nowhere = desired_store.FileStore(pathlib.Path('/nonexistent'))
    return intake.Intake(
        ledger_module.ReportLedger('me', 'boot', LIMITS),
        LIMITS,
        desired_state.DesiredState('me', nowhere),
        quiet_log.NameCounts(),
        quiet_log.QuietLog(logging.getLogger(__name__), clock),
        clock,
    )


def _check_alike(
    ledger: ledger_module.ReportLedger, other: intake.Intake, now_s: float
) -> None:
    """Whether numbers were read at once or later makes no difference."""
    metric = 'GreedinessMetric'
    one = ledger.view(now_s, None, metric, 10.0)
    two = other.view(now_s, None, metric, 10.0)
    assert list(one.reports) == list(two.reports)
    assert list(one.left_out) == list(two.left_out)
    for mine, theirs in zip(
        one.reports.values(), two.reports.values(), strict=True
    ):
        assert (mine.boot_id, mine.sequence) == (
            theirs.boot_id,
            theirs.sequence,
        )
        tables = [report.UserTable.of(item.users) for item in (mine, theirs)]
        assert tables[0].ids == tables[1].ids
        assert np.array_equal(tables[0].usage, tables[1].usage)


def _messages(content: bytes) -> list[object]:
    reader = msgpack.Unpacker(
        strict_map_key=False, max_buffer_size=max(len(content), 1)
    )
    reader.feed(content)
    found: list[object] = []
    try:
        for message in reader:
            found.append(message)
            if len(found) == _MOST_MESSAGES:
                break
    # What the bytes are is not the question here.
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        pass
    return found


def _check_report(got: codec_module.DecodedMessage) -> None:
    table = report.UserTable.of(got.report.users)
    assert list(table.ids) == sorted(set(table.ids))
    assert len(table) <= LIMITS.max_users
    assert np.isfinite(table.instance_heaviness).all()
    for amounts in (
        table.endowment,
        table.usage,
        table.wanted,
        table.grades,
    ):
        assert amounts is not None
        assert np.isfinite(amounts).all()
        assert (amounts >= 0).all()
    assert (table.instances >= 1).all()
    capacity = got.report.resources.capacity
    assert ((capacity >= 0) & (capacity <= LIMITS.capacity)).all()
    assert math.isfinite(got.report.interval_s)
    _check_names(got)
    again = codec_module.decode(
        codec_module.encode(got.report, got.desired), LIMITS
    )
    assert again.desired == got.desired
    assert again.report.users.ids == table.ids
    assert np.array_equal(again.report.users.usage, table.usage)


def _check_text(error: Exception) -> None:
    assert 0 < len(str(error)) < 1000
    assert str(error).isprintable()


def _check_names(got: codec_module.DecodedMessage) -> None:
    """Everything that is told can be written, in a log and in UTF-8."""
    names = [got.report.host, got.report.boot_id, got.report.metric]
    if got.desired is not None:
        names += [got.desired.metric, got.desired.policy, got.desired.origin]
        assert 1 <= got.desired.epoch <= desired.LARGEST_EPOCH
    for name in (*names, *got.report.users):
        assert name.isprintable()
        assert len(name.encode()) <= 4 * limits.LONGEST_NAME


def _check_ledger(ledger: ledger_module.ReportLedger, now_s: float) -> None:
    view = ledger.view(now_s, None, 'GreedinessMetric', 10.0)
    assert ledger.hosts <= LIMITS.max_peers
    assert ledger.rows <= LIMITS.max_total_users
    kept = sum(len(item.users) for item in view.reports.values())
    assert kept <= ledger.rows
    assert 'me' not in view.reports
    assert not set(view.reports) & set(view.left_out)
    assert list(view.reports) == sorted(view.reports)


def _alike(one: object, other: object) -> bool:
    # A number that is none does not equal itself, its text does.
    return repr(one) == repr(other)


TARGETS = {'codec': codec, 'messages': messages}
