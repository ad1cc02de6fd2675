# SPDX-License-Identifier: Apache-2.0

"""Images of servers that leave, as Glance lists them."""

from cryptography import fernet
import pytest

from nova_fairness.cluster.openstack import glance
from nova_fairness.cluster.store import sealing
from tests.fixtures import fake_cloud

OLD, NEW, OTHER = (fernet.Fernet.generate_key().decode() for _ in range(3))
FILES = {'before': (OLD,), 'while': (NEW, OLD), 'after': (NEW,)}
"""Keys of the file while a key is changed."""


def with_keys(cloud, keys):
    return glance.Images(cloud.apis.glance, sealing.Sealer(keys).pseudonyms)


@pytest.fixture
def cloud():
    return fake_cloud.FakeCloud()


def unfinished_image(cloud, mark):
    """An image in the making."""
    cloud.images['i1'] = {
        'id': 'i1', 'name': 'x', 'owner': 'admin', 'status': 'saving', **mark
    }  # fmt: skip


@pytest.mark.parametrize(
    ('begun', 'known'),
    [
        ('before', {'before', 'while'}),
        ('while', {'before', 'while', 'after'}),
        ('after', {'while', 'after'}),
    ],
)
def test_an_unfinished_image_is_found_during_key_rotation(cloud, begun, known):
    """Other processes may still have the file as it was."""
    unfinished_image(
        cloud, with_keys(cloud, FILES[begun]).image_properties('l1')
    )
    found = {
        when
        for when, keys in FILES.items()
        if with_keys(cloud, keys).find_image('l1') is not None
    }
    assert found == known


@pytest.mark.parametrize('proof', [None, '', ' ', 'None', 7, ['x'], 'x y'])
def test_an_image_with_a_wrong_signature_is_ignored(cloud, proof):
    unfinished_image(cloud, {glance.LEAVE: 'l1', glance.PROOF: proof})
    assert with_keys(cloud, FILES['while']).find_image('l1') is None
    unfinished_image(cloud, with_keys(cloud, (OTHER,)).image_properties('l1'))
    assert with_keys(cloud, FILES['while']).find_image('l1') is None
    mark = with_keys(cloud, (NEW,)).image_properties('l2')
    unfinished_image(cloud, {**mark, glance.LEAVE: 'l1'})
    assert with_keys(cloud, FILES['while']).find_image('l1') is None


def test_a_mark_signed_with_many_keys_fits_into_nova_metadata(cloud):
    keys = tuple(fernet.Fernet.generate_key().decode() for _ in range(9))
    unfinished_image(cloud, with_keys(cloud, keys).image_properties('l1'))
    assert len(cloud.images['i1'][glance.PROOF]) <= 255
    assert with_keys(cloud, keys[:1]).find_image('l1') is not None
