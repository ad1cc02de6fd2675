# SPDX-License-Identifier: Apache-2.0

"""The door of the log: every message of ours is one line of plain text,
without HTML.

All log messages pass here, with all names that others chose, so that no module
has to think of it.
"""

import logging

from nova_fairness.model import plain

OURS = ('nova_fairness', 'api_ext', 'oslo_messaging_zmq', 'fairness_lab')
"""Packages whose messages are judged; nova-api has others, too."""

_Record = logging.LogRecord


def install() -> None:
    """Judge messages from now on; a second time nothing happens."""
    made_before = logging.getLogRecordFactory()
    if getattr(made_before, 'is_safe', False):
        return

    def make(*given: object, **more: object) -> _Record:
        record: _Record = made_before(*given, **more)
        # Who makes one of another process's message names it afterwards.
        if str(record.name).partition('.')[0] in OURS:
            make_plain(record)
        return record

    make.is_safe = True  # type: ignore[attr-defined]  # a mark for ourselves
    logging.setLogRecordFactory(make)


def make_plain(record: _Record) -> None:
    """Let a message be one line of plain text."""
    try:
        said = record.getMessage()
    except Exception:  # noqa: BLE001
        # Whatever formatting raises is reported by the handlers of the log.
        return
    told = plain.untagged(said)
    if told != said or not told.isprintable():
        record.msg, record.args = plain.line(told), None
