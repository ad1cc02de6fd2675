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

"""What the manual says was measured is what was recorded."""

import pytest

from tests.fixtures import benchmark


@pytest.mark.parametrize(
    'name',
    [
        'all_at_once_page',
        'api_latency_page',
        'exchange_page',
        'scenarios_page',
        'sizing_page',
    ],
)
def test_the_page_is_made_of_what_is_recorded(name):
    page = benchmark.load(name)
    assert page.PAGE.read_text() == page.recorded()
