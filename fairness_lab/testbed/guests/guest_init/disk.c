/*
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * Disk load, and exact one-shot transfers. Disks are opened with O_DIRECT, so
 * that what the guest does is what its disk sees. A deep load is made by as
 * many threads, each with one request under way at a random place; a load of
 * depth 1 goes through the disk from its beginning.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <linux/fs.h>

#include "guest.h"

#define FIRST_DISK "/dev/vda"
#define SECTOR 512u
#define BLOCK 65536u
#define BIG_BLOCK (1u << 20)

static struct flow reading = FLOW(BLOCK, 0);
static struct flow writing = FLOW(BLOCK, 1);

struct mover {
    struct flow *flow;
    unsigned number;
    uint64_t size;   /* of the disk, bytes */
    uint64_t at;     /* where the next block begins */
    uint64_t random; /* state of the generator */
};

static void *aligned(unsigned bytes)
{
    void *memory = 0;

    if (posix_memalign(&memory, 4096, bytes))
        return 0;
    memset(memory, 0x5a, bytes);
    return memory;
}

/* Says on the console what went wrong; not so often as to be a load. */
static void complain(const char *what, unsigned number)
{
    printf("disk load %u cannot %s: %s\n", number, what, strerror(errno));
    sleep_until_ns(now_ns() + 1000000000u);
}

/* Opens the disk; one that is not there may come later. */
static int opened_disk(uint64_t *size)
{
    int disk = open(FIRST_DISK, O_RDWR | O_DIRECT);

    if (disk >= 0 && !ioctl(disk, BLKGETSIZE64, size) && *size)
        return disk;
    if (disk >= 0)
        close(disk);
    sleep_until_ns(now_ns() + 1000000000u);
    return -1;
}

static uint64_t next_place(struct mover *self, unsigned block)
{
    uint64_t at = self->at;

    if (self->flow->depth > 1 && self->size > block) {
        self->random ^= self->random << 13;
        self->random ^= self->random >> 7;
        self->random ^= self->random << 17;
        return self->random % (self->size / block) * block;
    }
    if (at + block > self->size)
        at = 0;
    self->at = at + block;
    return at;
}

static void *move_blocks(void *argument)
{
    struct mover *self = argument;
    int is_write = self->flow->writes, disk = -1;
    unsigned room = 0;
    char *memory = 0;

    for (;;) {
        unsigned block = await_turn(self->flow, self->number);
        ssize_t moved;
        uint64_t at;

        if (!block || (disk < 0 && (disk = opened_disk(&self->size)) < 0))
            continue;
        if (block > room) {
            free(memory);
            memory = aligned(block);
            room = memory ? block : 0;
            if (!room)
                continue;
        }
        at = next_place(self, block);
        moved = is_write ? pwrite(disk, memory, block, (off_t)at)
                         : pread(disk, memory, block, (off_t)at);
        if (moved > 0)
            atomic_fetch_add(is_write ? &done.written : &done.read,
                             (unsigned long long)moved);
        else
            complain("move a block", self->number);
    }
    return 0;
}

/* Starts the threads that a depth needs and that do not run yet. */
static void start_movers(struct flow *flow, unsigned depth)
{
    static struct mover movers[2][MAX_DEPTH];
    static unsigned started[2];
    pthread_t thread;

    while (started[flow->writes] < depth) {
        unsigned number = started[flow->writes]++;
        struct mover *self = &movers[flow->writes][number];

        self->flow = flow;
        self->number = number;
        self->random = now_ns() * 2 + 1;
        if ((errno = pthread_create(&thread, 0, move_blocks, self)))
            complain("start a thread", number);
    }
}

void set_disk_load(double read_rate, double write_rate, unsigned block,
                   unsigned depth)
{
    if (block < SECTOR || block > BIG_BLOCK)
        block = BLOCK;
    if (depth < 1)
        depth = 1;
    if (depth > MAX_DEPTH)
        depth = MAX_DEPTH;
    if (read_rate)
        start_movers(&reading, depth);
    if (write_rate)
        start_movers(&writing, depth);
    set_flow(&reading, read_rate, block, depth);
    set_flow(&writing, write_rate, block, depth);
}

int64_t disk_transfer(const char *device, uint64_t bytes, int is_write)
{
    char *memory = aligned(BIG_BLOCK);
    int disk = open(device, O_RDWR | O_DIRECT);
    uint64_t size = 0, at = 0, total = 0;

    if (disk < 0 || ioctl(disk, BLKGETSIZE64, &size))
        total = bytes = 0;
    while (total < bytes) {
        uint64_t left = bytes - total;
        uint64_t block = left < BIG_BLOCK ? left : BIG_BLOCK;
        ssize_t moved;

        if (at + block > size)
            at = 0;
        moved = is_write ? pwrite(disk, memory, block, (off_t)at)
                         : pread(disk, memory, block, (off_t)at);
        if (moved <= 0)
            break;
        atomic_fetch_add(is_write ? &done.written : &done.read,
                         (unsigned long long)moved);
        at += (uint64_t)moved;
        total += (uint64_t)moved;
    }
    if (disk >= 0 && is_write)
        fsync(disk);
    if (disk >= 0)
        close(disk);
    free(memory);
    return (int64_t)total;
}
