# SPDX-License-Identifier: Apache-2.0

"""Images in Glance that preserve servers before their eviction deletes them.

Users may set any property on their own images. An image of a user must not
cause the deletion of a server, nor be used to restart it. So images of this
service have a proof beside the UUID; others can read the proof, but not
compute it.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any

from nova_fairness import exception
from nova_fairness.cluster.openstack import clients

LEAVE = 'fairness_leave'
"""Property of an image: UUID of the eviction of its server."""

PROOF = 'fairness_proof'
"""Property of an image: proves that this service created it. It has one word
per key, so that a key can be replaced while an image is created.
"""

_MOST_PROOFS = 6
"""Largest number of proofs in an image, because Nova limits a property to 255
characters.
"""

_WHOLE = 'active'
_COMING = frozenset({'queued', 'saving', 'uploading', 'importing'})


@dataclasses.dataclass(frozen=True, slots=True)
class Image:
    """An image of a server.

    :ivar uuid: UUID of the image.
    :ivar owner: project that owns the image.
    :ivar is_whole: whether a server can be started from it.
    """

    uuid: str
    owner: str
    is_whole: bool


class Images:
    """Creates properties of images, and finds, transfers and deletes images in
    Glance.

    :param api: API of Glance.
    :param proofs: returns names that others cannot compute; see
        :meth:`.Store.pseudonyms`. Once all names of the same parts have
        changed, older images are not found.
    """

    def __init__(
        self, api: clients.Api, proofs: Callable[[str, str], Sequence[str]]
    ) -> None:
        self._api = api
        self._proofs = proofs

    def image_properties(self, eviction_uuid: str) -> Mapping[str, str]:
        """Return the properties that the image of an eviction gets.

        :param eviction_uuid: UUID of the eviction.
        """
        proofs = self._proofs('image', eviction_uuid)[:_MOST_PROOFS]
        return {LEAVE: eviction_uuid, PROOF: ' '.join(proofs)}

    def find_image(self, eviction_uuid: str) -> Image | None:
        """Return the image of an eviction that is complete or being uploaded;
        ``None`` without one.

        :param eviction_uuid: UUID of the eviction.
        :raises CloudError: if images cannot be read.
        """
        found = self._api.get(f'/images?{LEAVE}={eviction_uuid}')
        if found is None:
            raise exception.CloudAway(
                'Glance answers 404 to its list of images'
            )
        proofs = set(self._proofs('image', eviction_uuid))
        with clients.parsing('the list of images of Glance'):
            made = [
                _parse_image(each)
                for each in found['images']
                if each['status'] in {_WHOLE, *_COMING}
                and not proofs.isdisjoint(str(each.get(PROOF)).split())
            ]
        made.sort(key=lambda each: (not each.is_whole, each.uuid))
        return made[0] if made else None

    def set_owner(self, image: Image, project: str) -> None:
        """Make a project the owner of an image.

        :raises CloudError: if it is unknown whether the owner was changed.
        """
        if image.owner != project:
            change = {'op': 'replace', 'path': '/owner', 'value': project}
            self._api.patch(f'/images/{image.uuid}', [change])

    def delete_image(self, image: Image) -> None:
        """Delete an image, if it exists.

        :raises CloudError: if it is unknown whether the image was deleted.
        """
        self._api.delete(f'/images/{image.uuid}')


def _parse_image(found: dict[str, Any]) -> Image:
    """Return the image of an entry of Glance's list."""
    return Image(found['id'], found['owner'], found['status'] == _WHOLE)
