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

import importlib.util
import pathlib

import pytest

BENCHMARKS = pathlib.Path(__file__).resolve().parents[3] / 'benchmarks'


@pytest.mark.parametrize(
    'name',
    [
        'all_at_once_page',
        'api_latency_page',
        'exchange_page',
        'scenarios_page',
    ],
)
def test_the_page_is_made_of_what_is_recorded(name):
    spec = importlib.util.spec_from_file_location(
        name, BENCHMARKS / f'{name}.py'
    )
    page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    assert page.PAGE.read_text() == page.recorded()
