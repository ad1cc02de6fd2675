# SPDX-License-Identifier: Apache-2.0

import dataclasses
import datetime as dt
import pathlib
import re

from cryptography import fernet
import pytest

from nova_fairness import exception
from nova_fairness.cluster.store import sealing
from tests.fixtures import store_contract


def test_a_key_file_is_for_its_owner_only(tmp_path):
    path = tmp_path / 'keys'
    sealing.add_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    with pytest.raises(exception.BadKeyFile, match='0640'):
        sealing.read_key_file(path)


@pytest.mark.parametrize('text', ['', 'short\n', 'ümlaut'])
def test_a_key_file_without_keys_is_refused(tmp_path, text):
    path = tmp_path / 'keys'
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(exception.BadKeyFile, match=re.escape(str(path))):
        sealing.read_key_file(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(exception.BadKeyFile, match='none'):
        sealing.read_key_file(tmp_path / 'none')


def test_a_new_key_comes_first_and_old_keys_can_be_removed(tmp_path):
    path = tmp_path / 'keys'
    sealing.add_key(path)
    first = path.read_text()
    sealing.add_key(path)
    assert path.read_text().endswith(first)
    assert len(path.read_text().split()) == 2
    sealing.remove_old_keys(path)
    assert len(path.read_text().split()) == 1
    assert path.read_text() != first


def test_a_key_file_that_cannot_be_replaced_stays_unchanged(
    tmp_path, monkeypatch
):
    path = tmp_path / 'keys'
    sealing.add_key(path)
    before = path.read_text()

    def refuse(*arguments):
        raise PermissionError

    monkeypatch.setattr(pathlib.Path, 'replace', refuse)
    with pytest.raises(PermissionError):
        sealing.add_key(path)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


def test_another_key_opens_nothing():
    cast = store_contract.make_cast()
    one, other = (
        sealing.Sealer((fernet.Fernet.generate_key().decode(),))
        for _ in range(2)
    )
    sealed = one.seal(cast)
    assert one.unseal('c1', cast.method, 1.0, sealed) == cast
    with pytest.raises(exception.SealBroken, match='c1'):
        other.unseal('c1', cast.method, 1.0, sealed)
    with pytest.raises(exception.SealBroken):
        other.reseal(sealed)


def test_a_sealed_message_shows_nothing_of_its_content():
    assert 'secret' not in repr(store_contract.make_cast())


def test_properties_that_cannot_be_written_are_refused():
    sealer = sealing.Sealer((fernet.Fernet.generate_key().decode(),))
    when = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    cast = dataclasses.replace(
        store_contract.make_cast(), properties={'headers': {'t': when}}
    )
    with pytest.raises(exception.StoreError, match='c1 cannot be stored'):
        sealer.seal(cast)
