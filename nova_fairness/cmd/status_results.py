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


"""Results of ``nova-fairness-status upgrade check``.

A check reads, changes nothing, and gives a result: success, a warning if the
agent works with less than it could, a failure if it does not work.
"""

from collections.abc import Callable

from oslo_config import cfg
import oslo_messaging
from oslo_upgradecheck import upgradecheck

from nova_fairness import exception
from oslo_messaging_zmq import errors

Check = Callable[[cfg.ConfigOpts], upgradecheck.Result]
Named = tuple[str, Check]


def success(details: str) -> upgradecheck.Result:
    """Give the result of what is as it should be."""
    return upgradecheck.Result(upgradecheck.Code.SUCCESS, details)


def warning(details: str) -> upgradecheck.Result:
    """Give the result of what works with less than it could."""
    return upgradecheck.Result(upgradecheck.Code.WARNING, details)


def failure(details: str) -> upgradecheck.Result:
    """Give the result of what does not work."""
    return upgradecheck.Result(upgradecheck.Code.FAILURE, details)


def run(check: Check, conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Run a check; what it stumbles over is its result."""
    try:
        return check(conf)
    except (
        exception.FairnessError,
        errors.MessagingError,
        oslo_messaging.MessagingException,
        cfg.Error,
        OSError,
        ValueError,
    ) as error:
        return failure(str(error))
