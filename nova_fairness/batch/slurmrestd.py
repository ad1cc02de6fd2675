# SPDX-License-Identifier: Apache-2.0

"""Slurm with slurmrestd, which is read over HTTP."""

import http.client
import os
import socket
from urllib import parse

from nova_fairness import exception
from nova_fairness.batch import slurm
from nova_fairness.batch import slurm_forms

URL = 'SLURMRESTD_URL'
"""Environment variable with the address of slurmrestd: ``http://host:6820`` or
``unix:/path``.
"""

_PATHS = '/openapi/v3'
_USER, _TOKEN = 'SLURM_USER', 'SLURM_JWT'


class SlurmRest(slurm.Slurm):
    """Slurm 22.05 to 26.05, read by slurmrestd, changed by ``scontrol``.

    slurmrestd of 22.05 cannot change nodes. Its address is in the environment
    variable :data:`URL`. If it wants a token, the token is in ``SLURM_JWT``,
    and the name of the token's user in ``SLURM_USER``.

    :param timeout_s: seconds in which slurmrestd must answer, > 0.
    """

    description = (
        'Slurm 22.05 to 26.05, looked at by slurmrestd and changed by'
        ' scontrol.'
    )

    def _chosen(self) -> slurm.Questions:
        form = slurm_forms.choose_form(
            slurm_forms.form_numbers_of_paths(self._get(_PATHS))
        )
        root = f'/slurm/{slurm_forms.form_name(form)}'
        return ('GET', f'{root}/nodes/'), ('GET', f'{root}/jobs/')

    def _answer(self, question: tuple[str, ...]) -> str:
        return self._get(question[-1])

    def _get(self, path: str) -> str:
        url = os.environ.get(URL, '')
        headers = {'Accept': 'application/json'}
        if token := os.environ.get(_TOKEN):
            headers['X-SLURM-USER-NAME'] = os.environ.get(_USER, 'root')
            headers['X-SLURM-USER-TOKEN'] = token
        connection = _connection(url, self._timeout_s)
        try:
            connection.request('GET', path, headers=headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors='replace')
        except (OSError, http.client.HTTPException) as error:
            raise exception.BatchAway(
                f'slurmrestd at {url} does not answer:'
                f' {type(error).__name__}: {error}'
            ) from error
        except ValueError:
            # The text of the error would show the token.
            raise exception.BatchAway(
                f'slurmrestd at {url} cannot be asked: {_TOKEN} or {_USER} of'
                ' the environment has characters that no header can have'
            ) from None
        finally:
            connection.close()
        if answer.status != http.HTTPStatus.OK:
            raise exception.BatchAway(
                f'slurmrestd at {url} answers {path} with {answer.status}:'
                f' {" ".join(text.split())[:200]}'
            )
        return text


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__('localhost', timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _connection(url: str, timeout_s: float) -> http.client.HTTPConnection:
    """A connection to the address in a URL.

    :raises BatchAway: if the URL is not valid.
    """
    try:
        found = parse.urlsplit(url)
        port = found.port
    except ValueError as error:
        raise exception.BatchAway(f'{URL} is no URL: {error}') from error
    if found.scheme == 'unix' and found.path:
        return _UnixConnection(found.path, timeout_s)
    kinds: dict[str, type[http.client.HTTPConnection]] = {
        'http': http.client.HTTPConnection,
        'https': http.client.HTTPSConnection,
    }
    if found.scheme not in kinds or not found.hostname:
        raise exception.BatchAway(
            f'{URL} must be http://host:port, https://host:port or'
            f' unix:/path, got {url!r}'
        )
    return kinds[found.scheme](found.hostname, port, timeout=timeout_s)
