/*
 * SPDX-License-Identifier: Apache-2.0
 */

#include <errno.h>
#include <time.h>

#include "guest.h"

#define BACKLOG_S 0.5

uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void sleep_until_ns(uint64_t when)
{
    struct timespec ts = {
        .tv_sec = (time_t)(when / 1000000000u),
        .tv_nsec = (long)(when % 1000000000u),
    };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, 0) == EINTR)
        ;
}

void bucket_set(struct bucket *bucket, double rate)
{
    bucket->rate = rate;
    bucket->level = 0;
    bucket->last = now_ns();
}

void bucket_fill(struct bucket *bucket)
{
    uint64_t now = now_ns();

    bucket->level += bucket->rate * (double)(now - bucket->last) / 1e9;
    if (bucket->level > bucket->rate * BACKLOG_S)
        bucket->level = bucket->rate * BACKLOG_S;
    bucket->last = now;
}
