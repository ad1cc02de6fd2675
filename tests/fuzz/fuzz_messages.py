#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

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
    atheris.Setup(sys.argv, targets.messages)
    atheris.Fuzz()
