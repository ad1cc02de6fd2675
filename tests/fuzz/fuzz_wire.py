#!/usr/bin/env python3
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

"""Fuzzes the messages of the driver; see README.rst."""

import pathlib
import sys

import atheris

# Merging runs this file as a command of its own.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

with atheris.instrument_imports(
    include=['nova_fairness', 'oslo_messaging_zmq']
):
    from tests.fuzz import targets

if __name__ == '__main__':
    atheris.Setup(sys.argv, targets.wire)
    atheris.Fuzz()
