/*
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * How late a sleeping program runs again: what somebody who types, or a
 * server that is called, feels of a busy host. A thread sleeps to the next
 * whole period and notes by how much it woke too late.
 */
#include <pthread.h>

#include "guest.h"

#define VERY_LATE_US 20000u

static _Atomic double wanted; /* wakes per second */
static atomic_ullong wakes, late_us, late_20ms;

static void note(uint64_t meant, uint64_t now)
{
    unsigned long long us = now > meant ? (now - meant) / 1000 : 0;

    atomic_fetch_add(&wakes, 1);
    atomic_fetch_add(&late_us, us);
    if (us >= VERY_LATE_US)
        atomic_fetch_add(&late_20ms, 1);
}

static void *sleep_and_wake(void *argument)
{
    uint64_t next = now_ns();

    (void)argument;
    for (;;) {
        double hertz = wanted;
        uint64_t now;

        if (hertz <= 0) {
            next = now_ns() + 100000000u;
            sleep_until_ns(next);
            continue;
        }
        next += (uint64_t)(1e9 / hertz);
        sleep_until_ns(next);
        now = now_ns();
        note(next, now);
        /* what was slept through is not waited for once more */
        if (now > next)
            next = now;
    }
    return 0;
}

void set_wake_load(double hertz)
{
    static int started;
    pthread_t thread;

    wanted = hertz;
    if (!started && hertz > 0) {
        started = 1;
        pthread_create(&thread, 0, sleep_and_wake, 0);
    }
}

void wake_report(unsigned long long *count, unsigned long long *us,
                 unsigned long long *very_late)
{
    *count = wakes;
    *us = late_us;
    *very_late = late_20ms;
}
