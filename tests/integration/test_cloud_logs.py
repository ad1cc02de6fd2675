# SPDX-License-Identifier: Apache-2.0

"""What all programs of a cloud said stays when it is gone."""

from tests.fixtures.nova_cloud import cloud
from tests.fixtures.nova_cloud import places


def test_logs_of_all_machines_of_a_cloud_are_kept(tmp_path):
    run, kept = tmp_path / 'run', tmp_path / 'kept'
    for folder in (places.CONTROLLER, *cloud.NODES):
        place = run / folder / 'log'
        place.mkdir(parents=True)
        (place / 'some.log').write_text(folder)
    cloud.keep_logs(run, kept)
    assert {path.name: path.read_text() for path in kept.iterdir()} == {
        'controller-some.log': places.CONTROLLER,
        **{f'{node}-some.log': node for node in cloud.NODES},
    }
