/*
 * SPDX-License-Identifier: Apache-2.0
 */


/*
 * CPU load that waits for itself. A closed loop runs for some CPU time, waits
 * as somebody who reads the answer would, and runs again: what it gets late it
 * asks for late, and less of it in all. A job of cron comes by the clock and
 * is done to its end, however late; so are those that come meanwhile.
 *
 * CPU time is counted in pieces of work whose cost was measured, as in cpu.c.
 * Here the guest runs for moments only and the host may interrupt most of
 * them, so the pieces are small and the cost is what one of the quicker took.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "guest.h"

#define WINDOW 256
#define QUICKER (WINDOW / 4)
#define MOST_THREADS 64

struct plan {
    unsigned threads;
    double run_s;  /* CPU time of each thread and cycle */
    double wait_s; /* closed: thereafter; cron: from begin to begin */
    int cron;
};

struct loop {
    pthread_t thread;
    unsigned number, seen;
    uint32_t durations[WINDOW];
    unsigned measured, pieces;
    double piece_s, owed_s;
    uint64_t state, chance, next;
};

static struct loop loops[MOST_THREADS];
static unsigned started;
static struct plan plan;
static atomic_uint generation;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;

static void learn(struct loop *self, uint64_t duration)
{
    uint32_t sorted[WINDOW];

    self->durations[self->measured++] =
        duration > UINT32_MAX ? UINT32_MAX : (uint32_t)duration;
    if (self->measured < WINDOW)
        return;
    memcpy(sorted, self->durations, sizeof(sorted));
    qsort(sorted, WINDOW, sizeof(sorted[0]), compare_durations);
    self->piece_s = sorted[QUICKER] / 1e9;
    self->measured = 0;
}

static void measured_piece(struct loop *self)
{
    uint64_t before = now_ns();

    do_piece(&self->state);
    learn(self, now_ns() - before);
}

/* Half to one and a half, so that loops do not fall into step. */
static double about_one(struct loop *self)
{
    self->chance ^= self->chance << 13;
    self->chance ^= self->chance >> 7;
    self->chance ^= self->chance << 17;
    return 0.5 + (double)(self->chance >> 11) / 9007199254740992.0;
}

static void work_off(struct loop *self)
{
    while (self->owed_s >= self->piece_s && self->seen == generation) {
        measured_piece(self);
        self->owed_s -= self->piece_s;
        if (++self->pieces % PIECES == 0)
            atomic_fetch_add(&done.work, 1);
    }
}

/* Waits until the next cycle is due. Gives 0 if the plan changed. */
static int await_cycle(struct loop *self, struct plan *mine)
{
    struct timespec due;
    int same;

    pthread_mutex_lock(&lock);
    while (self->number >= plan.threads)
        pthread_cond_wait(&changed, &lock);
    if (self->seen != generation) {
        self->seen = generation;
        self->owed_s = 0;
        self->next = now_ns();
        if (!plan.cron)
            self->next += (uint64_t)(about_one(self) * plan.wait_s * 1e9);
    }
    due.tv_sec = (time_t)(self->next / 1000000000u);
    due.tv_nsec = (long)(self->next % 1000000000u);
    while (self->seen == generation &&
           !pthread_cond_timedwait(&changed, &lock, &due))
        ;
    same = self->seen == generation;
    *mine = plan;
    pthread_mutex_unlock(&lock);
    return same;
}

static void *run_loop(void *argument)
{
    struct loop *self = argument;
    struct plan mine;

    for (int piece = 0; piece < WINDOW; piece++)
        measured_piece(self);
    for (;;) {
        if (!await_cycle(self, &mine))
            continue;
        self->owed_s += mine.run_s;
        work_off(self);
        if (mine.cron)
            self->next += (uint64_t)(mine.wait_s * 1e9);
        else
            self->next =
                now_ns() + (uint64_t)(about_one(self) * mine.wait_s * 1e9);
    }
    return 0;
}

static void start_until(unsigned threads)
{
    pthread_condattr_t monotonic;

    if (!started) {
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_cond_init(&changed, &monotonic);
    }
    for (; started < threads; started++) {
        struct loop *made = &loops[started];

        made->number = started;
        made->state = started + 1;
        made->chance = now_ns() * 2 + 1;
        pthread_create(&made->thread, 0, run_loop, made);
    }
}

static void follow(struct plan new)
{
    if (new.run_s <= 0)
        new.threads = 0;
    if (new.threads > MOST_THREADS)
        new.threads = MOST_THREADS;
    pthread_mutex_lock(&lock);
    start_until(new.threads);
    plan = new;
    generation++;
    if (started)
        pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void set_open_load(double cpus)
{
    follow((struct plan){0});
    set_cpu_load(cpus);
}

/* A thread alone runs for run_s of every run_s + think_s. */
void set_closed_load(double cpus, unsigned threads, double think_s)
{
    double each = threads ? cpus / threads : 0;

    set_cpu_load(0);
    follow((struct plan){threads, think_s * each / (1 - each), think_s, 0});
}

void set_cron_load(double cpus, double period_s)
{
    unsigned threads = (unsigned)vcpu_count();

    set_cpu_load(0);
    follow((struct plan){threads, cpus / threads * period_s, period_s, 1});
}
