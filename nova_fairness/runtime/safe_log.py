# SPDX-License-Identifier: Apache-2.0

"""Makes every log message one line of plain text without HTML.

All messages of this product pass here, with all names that users chose, so
that no module must escape them.
"""

import logging

from nova_fairness.model import plain

OURS = ('nova_fairness', 'api_ext', 'oslo_messaging_zmq', 'fairness_lab')
"""Packages whose messages are changed; nova-api has others, too."""

_Record = logging.LogRecord


def install() -> None:
    """Install the log record factory; a second call does nothing."""
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
    """Replace a record's message by one line of plain text."""
    try:
        said = record.getMessage()
    except Exception:  # noqa: BLE001
        # Whatever formatting raises is reported by the handlers of the log.
        return
    told = plain.untagged(said)
    if told != said or not told.isprintable():
        record.msg, record.args = plain.line(told), None
