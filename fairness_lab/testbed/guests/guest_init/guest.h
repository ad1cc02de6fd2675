/*
 * SPDX-License-Identifier: Apache-2.0
 */

#ifndef GUEST_H
#define GUEST_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define MAX_CPUS 64
#define MAX_DEPTH 64
#define SINK_PORT 9

/* Counters since the guest started; all only grow. */
struct counters {
    atomic_ullong work;     /* units of CPU work */
    atomic_ullong read;     /* bytes read from disks */
    atomic_ullong written;  /* bytes written to disks */
    atomic_ullong sent;     /* payload bytes handed to UDP sockets */
    atomic_ullong received; /* payload bytes taken from the UDP sink */
};

extern struct counters done;

/* setup.c */
void mount_filesystems(void);
void load_modules(void);
void configure_network(void);

/* cpu.c */
void start_cpu_load(void);
void set_cpu_load(double cpus);
double unit_seconds(void);
int vcpu_count(void);
int compare_durations(const void *a, const void *b);

#define PIECES 10 /* of a unit of work */

void do_piece(uint64_t *state);
void do_cpu_work(uint64_t units);
void burn_cpu(double seconds);

/* loops.c; CPU time per wall time that is wanted alone. Each ends the load
 * that another of them began. */
void set_open_load(double cpus);
void set_closed_load(double cpus, unsigned threads, double think_s);
void set_cron_load(double cpus, double period_s);

/* memory.c */
void start_memory_load(void);
void set_memory_load(uint64_t bytes);
uint64_t memory_load(void);

/* clock.c */
uint64_t now_ns(void);
void sleep_until_ns(uint64_t when);

/* A rate turned into permission to act: what was earned and not used is
 * kept for half a second at most. */
struct bucket {
    double rate;
    double level;
    uint64_t last;
};

void bucket_set(struct bucket *bucket, double rate);
void bucket_fill(struct bucket *bucket);

/* flow.c */
struct flow {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct bucket wanted; /* bytes per second; < 0 = no limit */
    unsigned block;       /* bytes */
    unsigned depth;       /* so many threads may move at once */
    int writes;
};

#define FLOW(block, writes)                                                  \
    {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {0, 0, 0}, block,   \
     1, writes}

/* Waits until a thread may move one block; gives its size, or 0 to ask
 * again. */
unsigned await_turn(struct flow *flow, unsigned number);
void set_flow(struct flow *flow, double rate, unsigned block, unsigned depth);

/* disk.c; rates in bytes per second, < 0 = as fast as possible */
void set_disk_load(double read_rate, double write_rate, unsigned block,
                   unsigned depth);
int64_t disk_transfer(const char *device, uint64_t bytes, int writing);

/* net.c; rates as above */
void start_net_load(void);
int set_net_load(const char *host, int port, double rate);
int64_t net_send(const char *host, int port, uint64_t bytes);

/* tcp.c */
void start_tcp_load(void);
int set_tcp_load(const char *host, int port, unsigned flows, int sends);

/* wake.c */
void set_wake_load(double hertz);
void wake_report(unsigned long long *wakes, unsigned long long *late_us,
                 unsigned long long *late_20ms);

#endif
