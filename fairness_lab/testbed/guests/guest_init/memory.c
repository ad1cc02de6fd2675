/*
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * Memory load: keeps so many bytes mapped and touches every page once a
 * second, so that none of them looks idle.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "guest.h"

#define PAGE 4096u
#define ROUND_NS 1000000000u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char *area;
static uint64_t size;

static void *touch(void *argument)
{
    (void)argument;
    for (uint64_t round = now_ns();; round = now_ns()) {
        pthread_mutex_lock(&lock);
        for (uint64_t at = 0; at < size; at += PAGE)
            area[at]++;
        pthread_mutex_unlock(&lock);
        sleep_until_ns(round + ROUND_NS);
    }
    return 0;
}

void start_memory_load(void)
{
    pthread_t thread;

    pthread_create(&thread, 0, touch, 0);
}

void set_memory_load(uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    if (area)
        munmap(area, size);
    area = 0;
    size = 0;
    if (bytes) {
        void *fresh = mmap(0, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (fresh != MAP_FAILED) {
            area = fresh;
            size = bytes;
            for (uint64_t at = 0; at < size; at += PAGE)
                area[at] = (unsigned char)at | 1;
        }
    }
    pthread_mutex_unlock(&lock);
}

uint64_t memory_load(void)
{
    return size;
}
