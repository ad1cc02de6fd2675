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
