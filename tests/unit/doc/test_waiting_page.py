# SPDX-License-Identifier: Apache-2.0

"""Every reason why a request waits or ended is on the page for users."""

import pathlib
import re

from nova_fairness.model import reason

TOP = pathlib.Path(__file__).resolve().parents[3]
PAGE = TOP / 'doc' / 'source' / 'user' / 'waiting.rst'


def test_the_page_explains_each_reason():
    text = PAGE.read_text('utf-8')
    told = re.findall(r'^``(\w+)``\n   \S', text, re.MULTILINE)
    assert sorted(told) == sorted(each.value for each in reason.Reason)
