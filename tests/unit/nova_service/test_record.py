# SPDX-License-Identifier: Apache-2.0

"""The row by which Nova knows that an agent runs."""

import threading
import types

from nova import exception as nova_exception
from nova.notifications.objects import base as notifications
from nova.objects import service as service_object
import oslo_messaging
import pytest

from nova_fairness import exception
from nova_fairness.nova_service import record

ENOUGH_S = 60  # for broken code only


class FakeConductor:
    """Nova's table of services, and what goes wrong with it."""

    def __init__(self):
        self.rows = {}
        self.counts = []
        self.after_creation = None
        self.failure = None
        self.is_kept = False
        self.reported = threading.Condition()

    def saved(self, row):
        with self.reported:
            if self.failure is not None:
                self.counts.append(self.failure)
                self.reported.notify_all()
                raise self.failure
            if row.host not in self.rows:
                self.counts.append(None)
                self.reported.notify_all()
                raise nova_exception.ServiceNotFound(service_id=1)
            self.counts.append(row.report_count)
            self.reported.notify_all()

    def await_reports(self, count):
        with self.reported:
            assert self.reported.wait_for(
                lambda: len(self.counts) >= count, ENOUGH_S
            )


@pytest.fixture
def conductor(monkeypatch):
    made = FakeConductor()

    class FakeService(types.SimpleNamespace):
        version = service_object.SERVICE_VERSION

        def __init__(self, asker, **values):
            super().__init__(**values)

        def create(self):
            made.rows[self.host] = self
            if made.after_creation is not None:
                raise made.after_creation

        def save(self):
            made.saved(self)

        def destroy(self):
            if not made.is_kept:
                del made.rows[self.host]
            if made.after_creation is not None:
                raise made.after_creation

        @classmethod
        def get_by_host_and_binary(cls, asker, host, binary):
            assert binary == 'nova-fairness'
            return made.rows.get(host)

    monkeypatch.setattr(
        record, 'objects', types.SimpleNamespace(Service=FakeService)
    )
    return made


@pytest.fixture
def reporter(conductor):
    made = record.ServiceRecord('cmp1', 0.001)
    yield made
    made.stop()


def test_a_new_node_gets_a_row_whose_count_grows(conductor, reporter):
    reporter.start()
    conductor.await_reports(3)
    assert conductor.counts[:3] == [1, 2, 3]
    row = conductor.rows['cmp1']
    assert (row.binary, row.topic) == ('nova-fairness', 'fairness')


@pytest.mark.parametrize(
    'after_creation',
    [
        ValueError('Field value nova-fairness is invalid'),
        oslo_messaging.RemoteError('ValueError', 'nova-fairness is invalid'),
        nova_exception.ServiceBinaryExists(
            host='cmp1', binary='nova-fairness'
        ),
    ],
)
def test_answers_of_nova_after_the_row_was_made_do_no_harm(
    conductor, reporter, after_creation
):
    conductor.after_creation = after_creation
    reporter.start()
    conductor.await_reports(2)
    assert conductor.counts[:2] == [1, 2]


def test_a_conductor_that_is_away_is_told_of_once(conductor, reporter, caplog):
    conductor.failure = oslo_messaging.MessagingTimeout('no answer')
    with caplog.at_level('INFO'):
        reporter.start()
        conductor.await_reports(3)
        assert 'MessagingTimeout' in reporter.problem
        conductor.failure = None
        conductor.await_reports(len(conductor.counts) + 2)
    assert reporter.problem == ''
    assert caplog.text.count('the report of this agent failed') == 1
    assert caplog.text.count('Nova has the record of this agent') == 1


def test_a_row_that_an_operator_deleted_is_made_again(conductor, reporter):
    reporter.start()
    conductor.await_reports(2)
    conductor.rows.clear()
    already = len(conductor.counts)
    conductor.await_reports(already + 4)
    assert 'cmp1' in conductor.rows


def test_a_row_of_an_older_nova_is_brought_up_to_date(conductor, reporter):
    conductor.rows['cmp1'] = old = record.objects.Service(
        None, host='cmp1', binary='nova-fairness', report_count=7
    )
    old.version = service_object.SERVICE_VERSION - 1
    reporter.start()
    conductor.await_reports(1)
    assert conductor.counts[0] == 8
    assert old.version == service_object.SERVICE_VERSION


@pytest.mark.parametrize(
    'answer',
    [
        None,
        ValueError('Field value nova-fairness is invalid'),
        oslo_messaging.RemoteError('ValueError', 'nova-fairness is invalid'),
    ],
)
def test_a_row_is_removed_despite_later_answers_of_nova(
    conductor, reporter, answer
):
    assert not reporter.remove()
    record.objects.Service(None, host='cmp1', binary='nova-fairness').create()
    conductor.after_creation = answer
    assert reporter.remove()
    assert conductor.rows == {}


def test_a_row_that_nova_keeps_is_told_of(conductor, reporter):
    record.objects.Service(None, host='cmp1', binary='nova-fairness').create()
    conductor.is_kept = True
    with pytest.raises(exception.StateError, match='keeps the row'):
        reporter.remove()


def test_nova_cannot_notify_of_the_row_of_a_program_that_it_does_not_know():
    # Why it answers 500 to a deletion by its API, after it was done.
    row = service_object.Service(host='cmp1', binary='nova-fairness')
    with pytest.raises(ValueError, match='nova-fairness is invalid'):
        notifications.NotificationPublisher.from_service_obj(row)
