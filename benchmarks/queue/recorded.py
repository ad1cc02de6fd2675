# SPDX-License-Identifier: Apache-2.0

"""Where benchmarks of the queue write what they found."""

import argparse
import json
import os
import pathlib
import platform
import sys
from typing import Any


def parser(about: str) -> argparse.ArgumentParser:
    """A command line that says where to write, and nothing else yet.

    :param about: the script's docstring.
    """
    made = argparse.ArgumentParser(description=about.partition('\n')[0])
    made.add_argument('--out', type=pathlib.Path, required=True)
    return made


def write(out: pathlib.Path, found: dict[str, Any]) -> None:
    """Write figures beside the command and the machine that made them."""
    about = {
        'command': ' '.join(['python', *sys.orig_argv[1:]]),
        'machine': {
            'cpus': os.cpu_count(),
            'kernel': platform.release(),
            'python': platform.python_version(),
        },
    }
    out.write_text(json.dumps({**about, **found}, indent=1) + '\n')
