/*
 * Licensed under the Apache License, Version 2.0 (the "License"); you may
 * not use this file except in compliance with the License. You may obtain
 * a copy of the License at
 *
 *      http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software
 * distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
 * WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
 * License for the specific language governing permissions and limitations
 * under the License.
 */

/*
 * Disk and network load, and exact one-shot transfers. Disks are opened
 * with O_DIRECT, so that what the guest does is what its disk sees.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/fs.h>

#include "guest.h"

#define FIRST_DISK "/dev/vda"
#define SECTOR 512u
#define BIG_BLOCK (1u << 20)
#define PAYLOAD 1400u
#define PERIOD_NS 20000000u

struct flow {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct bucket wanted; /* bytes per second; < 0 = no limit */
    unsigned block;
    int writing;
    int socket;
};

static struct flow reading = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {0, 0, 0}, 65536,
    0, -1,
};
static struct flow writing = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {0, 0, 0}, 65536,
    1, -1,
};
static struct flow sending = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {0, 0, 0}, PAYLOAD,
    0, -1,
};

static void *aligned(unsigned bytes)
{
    void *memory = 0;

    if (posix_memalign(&memory, 4096, bytes))
        return 0;
    memset(memory, 0x5a, bytes);
    return memory;
}

/* Waits until the flow may move one block; gives the block's size. */
static unsigned await_turn(struct flow *flow)
{
    unsigned block;

    pthread_mutex_lock(&flow->lock);
    while (flow->wanted.rate == 0)
        pthread_cond_wait(&flow->changed, &flow->lock);
    block = flow->block;
    if (flow->wanted.rate > 0) {
        bucket_fill(&flow->wanted);
        if (flow->wanted.level < block) {
            /* a slow flow must be able to save up for one block */
            double backlog = flow->wanted.rate / 2;

            if (backlog < block && flow->wanted.level >= backlog)
                flow->wanted.level -= block;
            else
                block = 0;
        } else {
            flow->wanted.level -= block;
        }
    }
    pthread_mutex_unlock(&flow->lock);
    if (!block)
        sleep_until_ns(now_ns() + PERIOD_NS);
    return block;
}

static void *move_blocks(void *argument)
{
    struct flow *flow = argument;
    char *memory = aligned(BIG_BLOCK);
    uint64_t size = 0, at = 0;
    int disk = -1;

    for (;;) {
        unsigned block = await_turn(flow);
        ssize_t moved;

        if (!block)
            continue;
        if (disk < 0) {
            disk = open(FIRST_DISK, O_RDWR | O_DIRECT);
            if (disk < 0 || ioctl(disk, BLKGETSIZE64, &size)) {
                sleep_until_ns(now_ns() + 1000000000u);
                continue;
            }
        }
        if (at + block > size)
            at = 0;
        moved = flow->writing ? pwrite(disk, memory, block, (off_t)at)
                              : pread(disk, memory, block, (off_t)at);
        if (moved > 0)
            atomic_fetch_add(flow->writing ? &done.written : &done.read,
                             (unsigned long long)moved);
        at += block;
    }
    return 0;
}

static void *send_blocks(void *argument)
{
    struct flow *flow = argument;
    char payload[PAYLOAD] = {0};

    for (;;) {
        if (!await_turn(flow))
            continue;
        if (send(flow->socket, payload, sizeof(payload), 0) > 0)
            atomic_fetch_add(&done.sent, sizeof(payload));
        else
            sleep_until_ns(now_ns() + 1000000u);
    }
    return 0;
}

static void *swallow(void *argument)
{
    struct sockaddr_in6 any = {
        .sin6_family = AF_INET6, .sin6_port = htons(SINK_PORT),
    };
    int both = 0, sink = socket(AF_INET6, SOCK_DGRAM, 0);
    char payload[65536];

    (void)argument;
    setsockopt(sink, IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof(both));
    if (sink < 0 || bind(sink, (struct sockaddr *)&any, sizeof(any)))
        return 0;
    for (;;) {
        ssize_t got = recv(sink, payload, sizeof(payload), 0);

        if (got > 0)
            atomic_fetch_add(&done.received, (unsigned long long)got);
    }
    return 0;
}

void start_io_load(void)
{
    pthread_t thread;

    pthread_create(&thread, 0, move_blocks, &reading);
    pthread_create(&thread, 0, move_blocks, &writing);
    pthread_create(&thread, 0, send_blocks, &sending);
    pthread_create(&thread, 0, swallow, 0);
}

static void set_flow(struct flow *flow, double rate, unsigned block)
{
    pthread_mutex_lock(&flow->lock);
    bucket_set(&flow->wanted, rate);
    flow->block = block;
    pthread_cond_broadcast(&flow->changed);
    pthread_mutex_unlock(&flow->lock);
}

void set_disk_load(double read_rate, double write_rate, unsigned block)
{
    if (block < SECTOR || block > BIG_BLOCK)
        block = 65536;
    set_flow(&reading, read_rate, block);
    set_flow(&writing, write_rate, block);
}

static int connect_to(const char *host, int port)
{
    struct sockaddr_in four = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
    };
    struct sockaddr_in6 six = {
        .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port),
    };
    int is_four = inet_pton(AF_INET, host, &four.sin_addr) == 1, result;

    if (!is_four && inet_pton(AF_INET6, host, &six.sin6_addr) != 1)
        return -1;
    result = socket(is_four ? AF_INET : AF_INET6, SOCK_DGRAM, 0);
    if (connect(result,
                is_four ? (struct sockaddr *)&four : (struct sockaddr *)&six,
                is_four ? sizeof(four) : sizeof(six))) {
        close(result);
        return -1;
    }
    return result;
}

int set_net_load(const char *host, int port, double rate)
{
    int fresh = connect_to(host, port), old = sending.socket;

    if (fresh < 0)
        return -1;
    sending.socket = fresh;
    set_flow(&sending, rate, PAYLOAD);
    if (old >= 0)
        close(old);
    return 0;
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

int64_t net_send(const char *host, int port, uint64_t bytes)
{
    char payload[PAYLOAD] = {0};
    int out = connect_to(host, port);
    uint64_t total = 0;

    while (out >= 0 && total < bytes) {
        uint64_t left = bytes - total;
        size_t block = left < PAYLOAD ? (size_t)left : PAYLOAD;

        if (send(out, payload, block, 0) < 0) {
            if (errno != ENOBUFS && errno != EAGAIN)
                break;
            sleep_until_ns(now_ns() + 1000000u);
            continue;
        }
        total += block;
        atomic_fetch_add(&done.sent, block);
    }
    if (out >= 0)
        close(out);
    return (int64_t)total;
}
