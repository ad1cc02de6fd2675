/*
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * CPU load. The demand is CPU time per wall time: 0.4 means that the guest
 * wants 0.4 s of CPU in every second, however little it gets. A guest under
 * emulation cannot see what it is denied, so CPU time is counted in units of
 * work whose cost was measured: the mean duration of those units that took
 * no more than three times the lower quartile. A unit during which the guest
 * did not run lasts longer; one during which it served a timer does not, and
 * serving timers is CPU time, too.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest.h"

#define ITERATIONS 200000
#define PERIOD_NS 50000000u
#define WINDOW 128

struct worker {
    pthread_t thread;
    struct bucket wanted; /* seconds of CPU per second */
    uint32_t durations[WINDOW];
    unsigned measured;
    double unit_s;
    uint64_t state;
};

static struct worker workers[MAX_CPUS];
static int worker_count;
static _Atomic double demand; /* of one vCPU */
static atomic_uint generation;
static pthread_mutex_t wake_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;

int compare_durations(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/*
 * volatile: work that nobody looks at would be optimised away. Unrolled: an
 * emulator keeps registers in memory from one block of code to the next, and
 * what that costs wanders with the machine.
 */
static void spin(volatile uint64_t *state, int iterations)
{
    uint64_t x = *state | 1;

#pragma GCC unroll 16
    for (int i = 0; i < iterations; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    *state = x;
}

static double mean_below(const uint32_t *sorted, uint64_t limit)
{
    double sum = 0;
    int count = 0;

    while (count < WINDOW && sorted[count] <= limit)
        sum += sorted[count++];
    return sum / count;
}

static void learn(struct worker *self, uint64_t duration)
{
    uint32_t sorted[WINDOW];

    self->durations[self->measured++] =
        duration > UINT32_MAX ? UINT32_MAX : (uint32_t)duration;
    if (self->measured < WINDOW)
        return;
    memcpy(sorted, self->durations, sizeof(sorted));
    qsort(sorted, WINDOW, sizeof(sorted[0]), compare_durations);
    self->unit_s = mean_below(sorted, 3 * (uint64_t)sorted[WINDOW / 4]) / 1e9;
    self->measured = 0;
}

static void measured_unit(struct worker *self)
{
    uint64_t before = now_ns();

    spin(&self->state, ITERATIONS);
    learn(self, now_ns() - before);
}

static void one_unit(struct worker *self)
{
    measured_unit(self);
    atomic_fetch_add(&done.work, 1);
}

static void run_period(struct worker *self, double share)
{
    uint64_t start = now_ns();

    if (share >= 1) {
        while (now_ns() - start < PERIOD_NS)
            one_unit(self);
        return;
    }
    bucket_fill(&self->wanted);
    while (self->wanted.level >= self->unit_s &&
           now_ns() - start < 4 * PERIOD_NS) {
        one_unit(self);
        self->wanted.level -= self->unit_s;
    }
    sleep_until_ns(start + PERIOD_NS);
}

static void *work(void *argument)
{
    struct worker *self = argument;
    unsigned seen = 0;

    for (;;) {
        pthread_mutex_lock(&wake_lock);
        while (demand <= 0)
            pthread_cond_wait(&wake, &wake_lock);
        pthread_mutex_unlock(&wake_lock);
        if (seen != generation) {
            seen = generation;
            bucket_set(&self->wanted, demand);
        }
        run_period(self, demand);
    }
    return 0;
}

void start_cpu_load(void)
{
    worker_count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (worker_count > MAX_CPUS)
        worker_count = MAX_CPUS;
    for (int i = 0; i < worker_count; i++) {
        cpu_set_t only;

        workers[i].state = (uint64_t)i + 1;
        for (int unit = 0; unit < WINDOW && !i; unit++)
            measured_unit(&workers[i]);
        workers[i].unit_s = workers[0].unit_s;
        pthread_create(&workers[i].thread, 0, work, &workers[i]);
        CPU_ZERO(&only);
        CPU_SET(i, &only);
        pthread_setaffinity_np(workers[i].thread, sizeof(only), &only);
    }
}

void set_cpu_load(double cpus)
{
    pthread_mutex_lock(&wake_lock);
    demand = cpus < 0 ? 1 : cpus / worker_count;
    generation++;
    pthread_cond_broadcast(&wake);
    pthread_mutex_unlock(&wake_lock);
}

double unit_seconds(void)
{
    return workers[0].unit_s;
}

int vcpu_count(void)
{
    return worker_count;
}

void do_piece(uint64_t *state)
{
    spin(state, ITERATIONS / PIECES);
}

void do_cpu_work(uint64_t units)
{
    uint64_t state = 1;

    for (uint64_t i = 0; i < units; i++) {
        spin(&state, ITERATIONS);
        atomic_fetch_add(&done.work, 1);
    }
}

void burn_cpu(double seconds)
{
    uint64_t end = now_ns() + (uint64_t)(seconds * 1e9), state = 1;

    while (now_ns() < end) {
        spin(&state, ITERATIONS);
        atomic_fetch_add(&done.work, 1);
    }
}
