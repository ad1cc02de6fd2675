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

"""What the manual says of the cost of the interface is what was recorded."""

import importlib.util
import pathlib

TOP = pathlib.Path(__file__).resolve().parents[3]


def test_the_page_is_made_of_what_is_recorded():
    spec = importlib.util.spec_from_file_location(
        'api_latency_page', TOP / 'benchmarks/api_latency_page.py'
    )
    api_latency_page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(api_latency_page)
    assert api_latency_page.PAGE.read_text() == api_latency_page.recorded()
