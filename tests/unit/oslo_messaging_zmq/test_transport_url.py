# SPDX-License-Identifier: Apache-2.0

"""The Redis that a transport URL means."""

from oslo_config import cfg
import oslo_messaging
import pytest

from oslo_messaging_zmq.redis import url as transport_url

Settings = transport_url.RedisSettings


def parse(text):
    url = oslo_messaging.TransportURL.parse(cfg.ConfigOpts(), text)
    return transport_url.parse(url)


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('zmq+redis://db', Settings((('db', 6379),))),
        ('zmq+redis://db/', Settings((('db', 6379),))),
        ('zmq+redis://db:7000/3', Settings((('db', 7000),), 3)),
        ('zmq+redis://[::1]:7000', Settings((('::1', 7000),))),
        (
            'zmq+redis://:s%40cr%3Aet%2F@db:1',
            Settings((('db', 1),), password='s@cr:et/'),
        ),
        (
            'zmq+redis://me:secret@db:1',
            Settings((('db', 1),), username='me', password='secret'),
        ),
        ('zmq+redis://me@db', Settings((('db', 6379),), username='me')),
        ('zmq+redis://me:@db', Settings((('db', 6379),), username='me')),
        (
            'zmq+sentinel://a?service=m&sentinel_password=p+q&sentinel_user=a%2Bb',
            Settings(
                (('a', 26379),),
                service='m',
                sentinel_username='a+b',
                sentinel_password='p+q',
            ),
        ),
        ('zmq+rediss://db:1', Settings((('db', 1),), tls=True)),
        (
            'zmq+rediss://db/2?ca=%2Fca&cert=c&key=k&check_hostname=no',
            Settings(
                (('db', 6379),),
                2,
                tls=True,
                ca='/ca',
                certificate='c',
                key='k',
                check_hostname=False,
            ),
        ),
        (
            'zmq+sentinel://a,b:5/1?service=main',
            Settings((('a', 26379), ('b', 5)), 1, service='main'),
        ),
        (
            (
                'zmq+sentinel://:pw@a:1,b:2/?service=main&tls=true'
                '&sentinel_user=su&sentinel_password=sp'
            ),
            Settings(
                (('a', 1), ('b', 2)),
                password='pw',
                service='main',
                sentinel_username='su',
                sentinel_password='sp',
                tls=True,
            ),
        ),
    ],
)
def test_every_documented_form_is_understood(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('zmq://db', 'expected zmq+redis://, zmq+rediss:// or'),
        ('zmq+rabbit://db', 'expected zmq+redis://, zmq+rediss:// or'),
        ('rabbit://db', 'expected zmq+redis://, zmq+rediss:// or'),
        ('zmq+redis:///0', 'a host is missing'),
        ('zmq+redis://:7000/0', 'special characters in a password'),
        ('zmq+redis://a:1,b:2', 'expected one host, not 2'),
        ('zmq+redis://db:0', 'expected 1 to 65535'),
        ('zmq+redis://db:70000', 'expected 1 to 65535'),
        ('zmq+redis://db/main', "number of a database after the host, not 'm"),
        ('zmq+redis://db/-1', 'number of a database'),
        ('zmq+redis://db/٣', 'number of a database'),
        ('zmq+redis://db/123456', 'number of a database'),
        ('zmq+redis://db?ca=x', "unknown query 'ca'; zmq+redis:// knows: non"),
        (
            'zmq+rediss://db?ac=x',
            "unknown query 'ac'; zmq+rediss:// knows: ca",
        ),
        ('zmq+rediss://db?cert=x', 'expected cert and key together'),
        ('zmq+rediss://db?check_hostname=maybe', 'expected true or false'),
        ('zmq+sentinel://a,b', 'expected ?service='),
        ('zmq+sentinel://a?service=m&ca=x', 'of no use without tls=true'),
        (
            'zmq+sentinel://:hunter2@a,:hunter3@b?service=m',
            'same user and password at every host',
        ),
    ],
)
def test_an_invalid_transport_url_is_refused_with_the_expected_form(
    text, expected
):
    with pytest.raises(oslo_messaging.InvalidTransportURL) as caught:
        parse(text)
    assert expected in str(caught.value)
    assert 'hunter' not in str(caught.value)
    assert 'hunter' not in str(caught.value.url)


@pytest.mark.parametrize(
    'text',
    [
        'zmq+redis://:hunter2@db/x',
        'zmq+redis://me:hunter2@db,e',
        'zmq+sentinel://:hunter2@a',
        'zmq+sentinel://a?service=m&tls=7&sentinel_password=hunter2',
    ],
)
def test_no_error_shows_a_password(text):
    with pytest.raises(oslo_messaging.InvalidTransportURL) as caught:
        parse(text)
    shown = repr(caught.value) + str(caught.value) + str(caught.value.url)
    assert 'hunter2' not in shown
    assert caught.value.__context__ is None or (
        'hunter2' not in str(caught.value.__context__)
    )


def test_the_text_of_settings_shows_no_password():
    settings = parse(
        'zmq+sentinel://:hunter2@a?service=m&sentinel_password=hunter3'
    )
    assert settings.password == 'hunter2'
    assert settings.sentinel_password == 'hunter3'
    assert 'hunter' not in repr(settings)
    assert 'hunter' not in str(settings)
    assert settings.place == "Redis 'm' by Sentinel at a:26379"
    assert parse('zmq+redis://:x@[::1]:5').place == 'Redis at [::1]:5'
