# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Every page has a sentence in the index of its folder."""

import pathlib
import re

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[3] / 'doc' / 'source'
ENTRY = re.compile(r'^:doc:`([\w-]+)`\n   \w.*', re.MULTILINE)
FOLDERS = ('admin', 'contributor', 'reference', 'user')


@pytest.mark.parametrize('folder', FOLDERS)
def test_each_page_is_described_once(folder):
    index = SOURCE / folder / 'index.rst'
    pages = {path.stem for path in index.parent.glob('*.rst')} - {'index'}
    described = ENTRY.findall(index.read_text('utf-8'))
    assert sorted(described) == sorted(pages)
