# SPDX-License-Identifier: Apache-2.0

"""Writes good messages, from which a fuzzer begins; see README.rst."""

import pathlib

import msgpack

from nova_fairness.exchange import codec
from nova_fairness.exchange import desired
from oslo_messaging_zmq import messages
from tests.unit.exchange import build

CORPUS = pathlib.Path(__file__).parent / 'corpus'

_WISH = desired.DesiredChoice(7, 'GreedinessMetric', 'feedback', 'n9')


def of_codec() -> dict[str, bytes]:
    """Sequences of reports, good and odd."""
    sequences = {
        'one': [build.message()],
        'desired': [codec.encode(build.node_report(), _WISH)],
        'nobody': [codec.encode(build.node_report(users=()))],
        'run': [
            codec.encode(build.node_report(sequence=number))
            for number in (1, 2, 2, 1, 5_000)
        ],
        'bytes': [
            codec.encode(
                build.node_report(host, number, users=('anna',)),
                as_bytes=True,
            )
            for number in (1, 2, 3, 4)
            for host in 'ab'
        ],
        'restart': [
            codec.encode(build.node_report(boot_id=name, users=('anna',)))
            for name in ('a', 'b', 'a')
        ],
        'many': [
            codec.encode(build.node_report(host, users=('anna',)))
            for host in 'abcd'
        ],
        'own': [codec.encode(build.node_report('me', users=()))],
        'order': [build.message(resources=list(build.RESOURCES.names)[::-1])],
        'odd': [build.message(version=2), 7, None, {'host': 'n3'}],
    }
    return {
        name: b''.join(msgpack.packb(item) for item in items)
        for name, items in sequences.items()
    }


def of_messages() -> dict[str, bytes]:
    """One message of each kind and form."""
    report = {
        'method': 'report',
        'args': {'report': codec.encode(build.node_report(users=('a',)))},
        'version': '1.0',
    }
    call = {'method': 'set_metric', 'args': {'name': 'm', 'epoch': None}}
    requests = {
        'fanout': (messages.FANOUT, '', None, report),
        'call': (messages.CALL, 'id', 1.5, call),
        'cast': (messages.CAST, '', None, call),
        'json': (
            messages.CAST,
            '',
            None,
            {'method': 'm', 'args': {'n': 2**70}},
        ),
    }
    answers = {
        'reply': messages.Answer(messages.REPLY, 'id', {'epoch': 1}),
        'failure': messages.Answer(messages.REPLY, 'id', failure='{}'),
        'heartbeat': messages.Answer(messages.HEARTBEAT, 'id'),
        'big': messages.Answer(messages.REPLY, 'id', -(2**80)),
    }
    written = {
        name: messages.encode_request(
            messages.RequestMessage(
                kind, number, 'e', 't', 's', timeout, {}, message
            ),
            1 << 20,
        )
        for name, (kind, number, timeout, message) in requests.items()
    }
    return written | {
        name: messages.encode_answer(answer, 1 << 20)
        for name, answer in answers.items()
    }


def main() -> None:
    """Write every seed, under its name."""
    for corpus, seeds in (('codec', of_codec()), ('messages', of_messages())):
        folder = CORPUS / corpus
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in seeds.items():
            (folder / f'seed-{name}').write_bytes(content)


if __name__ == '__main__':
    main()
