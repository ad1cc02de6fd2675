# SPDX-License-Identifier: Apache-2.0

from fairness_lab.testbed.guests import image

ENTRIES = [
    image.ArchiveFile('init', b'#!/bin/true\n', executable=True),
    image.ArchiveFile('modules/order', b'a.ko\n'),
    image.ArchiveFile('modules/a.ko', b'\0' * 5),
]


def records(packed):
    """Read an archive back: (name, mode, content) of each record."""
    at = 0
    while True:
        assert packed[at : at + 6] == b'070701'
        fields = [
            int(packed[at + 6 + 8 * k : at + 14 + 8 * k], 16)
            for k in range(13)
        ]
        name_at = at + 110
        name = packed[name_at : name_at + fields[11] - 1].decode()
        content_at = (name_at + fields[11] + 3) // 4 * 4
        content = packed[content_at : content_at + fields[6]]
        if name == 'TRAILER!!!':
            return
        yield name, fields[1], content
        at = (content_at + fields[6] + 3) // 4 * 4


def test_files_of_an_image_come_out_with_their_directories():
    assert list(records(image.cpio(ENTRIES))) == [
        ('init', 0o100755, b'#!/bin/true\n'),
        ('modules', 0o040755, b''),
        ('modules/order', 0o100644, b'a.ko\n'),
        ('modules/a.ko', 0o100644, b'\0' * 5),
    ]


def test_the_same_files_give_the_same_bytes():
    assert image.cpio(ENTRIES) == image.cpio(list(ENTRIES))


def test_every_record_begins_at_a_multiple_of_four():
    assert len(image.cpio(ENTRIES)) % 4 == 0
