# SPDX-License-Identifier: Apache-2.0

"""Images in Glance that are kept of servers before they go.

Any user may set any property on an image of their own. Such an image must not
let a server be deleted, nor be the one that the owner starts again. So our
images have a proof beside the UUID, which others can read, too.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any

from nova_fairness import exception
from nova_fairness.cluster.openstack import clients

LEAVE = 'fairness_leave'
"""Property of an image: UUID of the one time that its server had to leave."""

PROOF = 'fairness_proof'
"""Property of an image: proves that this service made it, one word for each
key, so that a key can be changed while images are made."""

_MOST_PROOFS = 6
"""Nova takes no longer property: 255 characters."""

_WHOLE = 'active'
_COMING = frozenset({'queued', 'saving', 'uploading', 'importing'})


@dataclasses.dataclass(frozen=True, slots=True)
class Image:
    """An image of a server.

    :ivar uuid: of it.
    :ivar owner: project that it belongs to.
    :ivar is_whole: whether a server can be made of it.
    """

    uuid: str
    owner: str
    is_whole: bool


class Images:
    """Images in Glance.

    :param api: of Glance.
    :param proofs: gives names that others cannot guess; see
        :meth:`.Store.proofs`. Once all of them are others for the same parts,
        images that were made before are no longer found.
    """

    def __init__(
        self, api: clients.Api, proofs: Callable[[str, str], Sequence[str]]
    ) -> None:
        self._api = api
        self._proofs = proofs

    def mark(self, leave: str) -> Mapping[str, str]:
        """Properties of the image that is to be made for one leave.

        :param leave: UUID.
        """
        proofs = self._proofs('image', leave)[:_MOST_PROOFS]
        return {LEAVE: leave, PROOF: ' '.join(proofs)}

    def image_of(self, leave: str) -> Image | None:
        """Image of one leave that is complete or being uploaded.

        :param leave: UUID.
        :raises CloudError: if it cannot be read.
        """
        found = self._api.get(f'/images?{LEAVE}={leave}')
        if found is None:
            raise exception.CloudAway('Glance does not list images')
        proofs = set(self._proofs('image', leave))
        with clients.reading('what Glance says of images'):
            made = [
                _image(each)
                for each in found['images']
                if each['status'] in {_WHOLE, *_COMING}
                and not proofs.isdisjoint(str(each.get(PROOF)).split())
            ]
        made.sort(key=lambda each: (not each.is_whole, each.uuid))
        return made[0] if made else None

    def give(self, image: Image, project: str) -> None:
        """Let an image belong to a project; nothing happens if it does.

        :raises CloudError: if it is not known that it does.
        """
        if image.owner != project:
            change = {'op': 'replace', 'path': '/owner', 'value': project}
            self._api.patch(f'/images/{image.uuid}', [change])

    def remove(self, image: Image) -> None:
        """Delete an image; nothing happens if it is gone.

        :raises CloudError: if it is not known that it is gone.
        """
        self._api.delete(f'/images/{image.uuid}')


def _image(found: dict[str, Any]) -> Image:
    return Image(found['id'], found['owner'], found['status'] == _WHOLE)
