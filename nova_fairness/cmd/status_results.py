# SPDX-License-Identifier: Apache-2.0


"""Results of ``nova-fairness-status upgrade check``.

A check changes nothing, and returns a result: success, a warning if the agent
works with restrictions, or a failure if it does not work.
"""

from collections.abc import Callable

from oslo_config import cfg
import oslo_messaging
from oslo_upgradecheck import upgradecheck

from nova_fairness import exception
from nova_fairness.model import plain
from oslo_messaging_zmq import errors

Check = Callable[[cfg.ConfigOpts], upgradecheck.Result]
Named = tuple[str, Check]


def success(details: str) -> upgradecheck.Result:
    """Create the result of a check without problems."""
    return upgradecheck.Result(upgradecheck.Code.SUCCESS, details)


def warning(details: str) -> upgradecheck.Result:
    """Create the result if the agent works with restrictions."""
    return upgradecheck.Result(upgradecheck.Code.WARNING, details)


def failure(details: str) -> upgradecheck.Result:
    """Create the result if the agent does not work."""
    return upgradecheck.Result(upgradecheck.Code.FAILURE, details)


def run(check: Check, conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Run a check; an error that it raises becomes a failure."""
    try:
        found = check(conf)
    except (
        exception.FairnessError,
        errors.MessagingError,
        oslo_messaging.MessagingException,
        cfg.Error,
        OSError,
        ValueError,
    ) as error:
        found = failure(str(error))
    return upgradecheck.Result(found.code, plain.lines(found.details or ''))
