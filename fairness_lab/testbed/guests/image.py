# SPDX-License-Identifier: Apache-2.0

"""The laboratory's guest: a kernel and an initial RAM disk, built once.

The kernel is Debian's for clouds, taken out of its package without being
installed. The RAM disk holds one static program, which is compiled here and
is the guest's init and load, and the few drivers that it needs.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import fcntl
import gzip
import hashlib
import os
import pathlib
import re
import shutil
import tempfile

from fairness_lab.testbed.nodes import processes
from nova_fairness import exception

_DIRECTORY = 0o040755
_FILE = 0o100644
_PROGRAM = 0o100755


@dataclasses.dataclass(frozen=True, slots=True)
class ArchiveFile:
    """A file of an archive.

    :ivar path: relative, no leading slash.
    :ivar content: its bytes.
    :ivar executable: whether it can be run.
    """

    path: str
    content: bytes
    executable: bool = False


def cpio(entries: Iterable[ArchiveFile]) -> bytes:
    """Pack files, and the directories that they are in.

    Same files, same bytes: no times and no owners are kept.

    :param entries: with different paths.
    :returns: the archive.
    """
    parts: list[bytes] = []
    made: set[str] = set()
    for entry in entries:
        for parent in _parents(entry.path):
            if parent not in made:
                made.add(parent)
                parts.append(
                    _archive_record(len(parts), parent, _DIRECTORY, b'')
                )
        mode = _PROGRAM if entry.executable else _FILE
        parts.append(
            _archive_record(len(parts), entry.path, mode, entry.content)
        )
    parts.append(_archive_record(0, 'TRAILER!!!', 0, b''))
    return b''.join(parts)


def _parents(path: str) -> list[str]:
    parents = map(str, reversed(pathlib.PurePosixPath(path).parents))
    return [parent for parent in parents if parent != '.']


def _archive_record(
    number: int, path: str, mode: int, content: bytes
) -> bytes:
    name = path.encode() + b'\0'
    fields = (
        number + 1,
        mode,
        0,
        0,
        1,
        0,
        len(content),
        0,
        0,
        0,
        0,
        len(name),
        0,
    )
    head = b'070701' + b''.join(b'%08X' % field for field in fields)
    return _padded(head + name) + _padded(content)


def _padded(part: bytes) -> bytes:
    return part + b'\0' * (-len(part) % 4)


KERNEL_PACKAGE = 'linux-image-cloud-amd64'

MODULES = ('virtio_pci', 'virtio_blk', 'virtio_net', 'virtio_balloon')
"""Drivers that the guest needs and the kernel does not have built in."""

_SOURCES = pathlib.Path(__file__).parent / 'guest_init'
_COMPILE = ('gcc', '-static', '-O2', '-Wall', '-pthread', '-s', '-o')
_FORMAT = 1


@dataclasses.dataclass(frozen=True, slots=True)
class GuestImage:
    """The files that QEMU boots a guest from.

    :ivar directory: in which both files are.
    """

    directory: pathlib.Path

    @property
    def kernel(self) -> pathlib.Path:
        """The kernel."""
        return self.directory / 'vmlinuz'

    @property
    def initrd(self) -> pathlib.Path:
        """The initial RAM disk."""
        return self.directory / 'initrd.gz'

    @property
    def complete(self) -> bool:
        """Whether both files are there."""
        return self.kernel.is_file() and self.initrd.is_file()


def default_cache() -> pathlib.Path:
    """Directory in which images are kept between runs."""
    base = os.environ.get('XDG_CACHE_HOME') or '/var/cache'
    return pathlib.Path(base) / 'nova-fairness-lab'


@dataclasses.dataclass(frozen=True, slots=True)
class ImageRecipe:
    """How an image is made.

    :ivar name: of its directories in the cache.
    :ivar what: it is, for messages.
    :ivar sources: of its programs.
    :ivar modules: drivers in it.
    :ivar build: makes ``image`` in a directory from a kernel package.
    """

    name: str
    what: str
    sources: tuple[pathlib.Path, ...]
    modules: tuple[str, ...]
    build: Callable[[str, pathlib.Path], None]

    def key(self, package: str) -> str:
        """Name for what is made of a kernel package and the sources."""
        digest = hashlib.sha256(f'{_FORMAT} {package} {self.modules}'.encode())
        for source in self.sources:
            digest.update(source.name.encode() + source.read_bytes())
        return digest.hexdigest()[:16]


def ensure(cache: pathlib.Path) -> GuestImage:
    """Return the image of the guests; build it if the cache has none.

    :param cache: directory that is kept between runs.
    :raises LabEnvironmentError: see :func:`build_if_missing`.
    """
    sources = tuple(sorted(_SOURCES.glob('*.[ch]')))
    return build_if_missing(
        cache,
        ImageRecipe('image', 'image of the guests', sources, MODULES, _build),
    )


def build_if_missing(cache: pathlib.Path, recipe: ImageRecipe) -> GuestImage:
    """Return an image; build it if the cache has none of these inputs.

    :param cache: directory that is kept between runs.
    :raises LabEnvironmentError: if a needed program is not installed, or
        the kernel's package cannot be downloaded.
    """
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / f'{recipe.name}-lock').open('w') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return _build_while_locked(cache, recipe)
    except OSError as error:
        raise exception.LabEnvironmentError(
            f'{cache} cannot hold the {recipe.what}: {error}'
        ) from None


def _build_while_locked(
    cache: pathlib.Path, recipe: ImageRecipe
) -> GuestImage:
    known = cache / f'{recipe.name}-kernel-package'
    package = known.read_text() if known.is_file() else kernel_package()
    image = GuestImage(cache / f'{recipe.name}-{recipe.key(package)}')
    if image.complete:
        return image
    package = kernel_package()
    image = GuestImage(cache / f'{recipe.name}-{recipe.key(package)}')
    with tempfile.TemporaryDirectory(dir=cache, prefix='new-') as work:
        new = pathlib.Path(work)
        recipe.build(package, new)
        shutil.rmtree(image.directory, ignore_errors=True)
        (new / 'image').rename(image.directory)
    known.write_text(package)
    return image


def kernel_package() -> str:
    """Name of the present kernel package for clouds.

    :raises LabEnvironmentError: if the package archive is not known here.
    """
    text = processes.run(['apt-cache', 'depends', KERNEL_PACKAGE])
    found = re.search(r'Depends: (linux-image-\S+)', text)
    if not found:
        raise exception.LabEnvironmentError(
            f'apt knows no package {KERNEL_PACKAGE}, from which the guests '
            'take their kernel; run apt-get update on a Debian amd64 machine'
        )
    return found[1]


def _build(package: str, work: pathlib.Path) -> None:
    image = GuestImage(work / 'image')
    image.directory.mkdir()
    modules = unpack_kernel(package, work, image)
    program = work / 'init'
    sources = sorted(map(str, _SOURCES.glob('*.c')))
    processes.run([*_COMPILE, str(program), *sources])
    entries = [ArchiveFile('init', program.read_bytes(), executable=True)]
    entries += module_entries(modules, MODULES)
    with gzip.open(image.initrd, 'wb', compresslevel=1) as stream:
        stream.write(cpio(entries))


def unpack_kernel(
    package: str, work: pathlib.Path, image: GuestImage
) -> dict[str, pathlib.Path]:
    """Download a kernel's package and take out what is needed of it.

    :param package: as :func:`kernel_package` names it.
    :param work: an empty directory.
    :param image: into which the kernel is put.
    :returns: file by name of the driver, below ``work``.
    :raises LabEnvironmentError: if it cannot be had.
    """
    tree = work / 'tree'
    tree.mkdir()
    try:
        processes.run(['apt-get', '-qq', 'download', package], cwd=work)
    except exception.LabError as error:
        raise exception.LabEnvironmentError(
            f'the kernel of the guests cannot be downloaded: {error}'
        ) from None
    for deb in work.glob('*.deb'):
        processes.run(['dpkg-deb', '--extract', str(deb), str(tree)])
    kernels = list(tree.glob('boot/vmlinuz-*'))
    if not kernels:
        raise exception.LabEnvironmentError(f'{package} holds no kernel')
    shutil.move(kernels[0], image.kernel)
    return {path.stem: path for path in tree.rglob('*.ko')}


def module_entries(
    modules: dict[str, pathlib.Path], names: Sequence[str]
) -> list[ArchiveFile]:
    """Drivers, and what they need, as files of a RAM disk.

    :param modules: file by name of the driver.
    :param names: wanted drivers; those built into the kernel have no file.
    :returns: the drivers below ``modules/``, and ``modules/order``: their
        file names in the order in which they can be loaded.
    """
    order: list[str] = []
    for name in names:
        _add_with_needs(name, modules, order)
    text = ''.join(f'{name}.ko\n' for name in order)
    return [
        ArchiveFile('modules/order', text.encode()),
        *(
            ArchiveFile(f'modules/{name}.ko', modules[name].read_bytes())
            for name in order
        ),
    ]


def _add_with_needs(
    name: str, modules: dict[str, pathlib.Path], order: list[str]
) -> None:
    if name in order or name not in modules:
        return
    found = re.search(rb'\0depends=([^\0]*)\0', modules[name].read_bytes())
    needs = found[1].decode() if found else ''
    for need in filter(None, needs.split(',')):
        _add_with_needs(need, modules, order)
    order.append(name)
