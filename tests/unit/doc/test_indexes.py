# SPDX-License-Identifier: Apache-2.0

"""Every page has a sentence in the index of its folder."""

import pathlib
import re

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[3] / 'doc' / 'source'
ENTRY = re.compile(r'^:doc:`([\w-]+)`\n   \w.*', re.MULTILINE)
FOLDERS = (
    'admin',
    'cli',
    'contributor',
    'evaluation',
    'reference',
    'user',
)


@pytest.mark.parametrize('folder', FOLDERS)
def test_each_page_is_described_once(folder):
    index = SOURCE / folder / 'index.rst'
    pages = {path.stem for path in index.parent.glob('*.rst')} - {'index'}
    described = ENTRY.findall(index.read_text('utf-8'))
    assert sorted(described) == sorted(pages)
