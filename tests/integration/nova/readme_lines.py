# SPDX-License-Identifier: Apache-2.0

"""What the README tells people to send to nova-api, as it stands there."""

import json
import pathlib
import re
import subprocess
from typing import Any

from tests.fixtures.nova_cloud import cloud as cloud_module
from tests.fixtures.nova_cloud import machine
from tests.fixtures.nova_cloud import places
from tests.fixtures.nova_cloud import rest

README = pathlib.Path(__file__).resolve().parents[3] / 'README.rst'


def curl_commands() -> list[str]:
    """Commands of the README that begin with curl."""
    text = README.read_text(encoding='utf-8')
    return re.findall(r'^ {4}curl (?:.*\\\n)*.*$', text, re.MULTILINE)


def run_in_cloud(
    cloud: cloud_module.Cloud, command: str, session: rest.Session
) -> tuple[int, Any]:
    """Run a command where the cloud can be reached.

    :returns: status and body of the answer.
    """
    done = subprocess.run(
        cloud.controller.command(
            ['sh', '-ec', command + r" -w '\n%{http_code}'"]
        ),
        env=machine.environment(
            cloud.venv,
            {'TOKEN': session.token, 'NOVA': places.url('compute')},
        ),
        check=True,
        capture_output=True,
        text=True,
    )
    body, _, status = done.stdout.rpartition('\n')
    return int(status), json.loads(body)
