/*
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * The only program of a laboratory guest: it is the guest's init. Commands
 * come in on the second serial port, one per line; answers and reports go
 * out there. doc/source/user/scenarios.rst lists them.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "guest.h"

#define CONTROL_PORT "/dev/ttyS1"
#define REPORT_NS 1000000000u

struct counters done;

static int port = -1;
static pthread_mutex_t port_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int loaded;

static void say(const char *format, ...)
{
    char line[512];
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&port_lock);
    for (int at = 0; at < length;) {
        ssize_t wrote = write(port, line + at, (size_t)(length - at));

        if (wrote <= 0)
            break;
        at += (int)wrote;
    }
    pthread_mutex_unlock(&port_lock);
}

static void open_port(void)
{
    struct termios settings;

    port = open(CONTROL_PORT, O_RDWR | O_NOCTTY);
    if (port < 0 || tcgetattr(port, &settings))
        return;
    cfmakeraw(&settings);
    settings.c_cflag |= CLOCAL;
    cfsetspeed(&settings, B115200);
    tcsetattr(port, TCSANOW, &settings);
}

static void report(void)
{
    unsigned long long wakes, late_us, late_20ms;

    wake_report(&wakes, &late_us, &late_20ms);
    say("work %llu read %llu written %llu sent %llu received %llu "
        "memory %llu unit_ns %.0f wakes %llu late_us %llu late_20ms %llu\n",
        (unsigned long long)done.work, (unsigned long long)done.read,
        (unsigned long long)done.written, (unsigned long long)done.sent,
        (unsigned long long)done.received,
        (unsigned long long)memory_load(), unit_seconds() * 1e9, wakes,
        late_us, late_20ms);
}

static void *report_often(void *argument)
{
    (void)argument;
    for (uint64_t next = now_ns() + REPORT_NS;; next += REPORT_NS) {
        sleep_until_ns(next);
        if (next + 10ull * REPORT_NS < now_ns())
            next = now_ns();
        if (loaded)
            report();
        else
            /* Again and again: a byte of the first one can be lost. */
            say("ready\n");
    }
    return 0;
}

/* "max" is an amount without a limit, told apart by being negative. */
static double amount(const char *text)
{
    if (!text)
        return 0;
    return strcmp(text, "max") ? atof(text) : -1;
}

static uint64_t count(const char *text)
{
    return text ? strtoull(text, 0, 10) : 0;
}

static int set_load(const char *what, char **word)
{
    if (!strcmp(what, "cpu"))
        set_open_load(amount(word[1]));
    else if (!strcmp(what, "closed"))
        set_closed_load(amount(word[1]), (unsigned)count(word[2]),
                        amount(word[3]));
    else if (!strcmp(what, "cron"))
        set_cron_load(amount(word[1]), amount(word[2]));
    else if (!strcmp(what, "memory"))
        set_memory_load(count(word[1]));
    else if (!strcmp(what, "disk"))
        set_disk_load(amount(word[1]), amount(word[2]),
                      (unsigned)count(word[3]), (unsigned)count(word[4]));
    else if (!strncmp(what, "tcp-", 4) && word[1] && word[2])
        return set_tcp_load(word[1], atoi(word[2]), (unsigned)count(word[3]),
                            what[4] == 's')
                   ? -1
                   : 1;
    else if (!strcmp(what, "wake"))
        set_wake_load(amount(word[1]));
    else if (!strcmp(what, "net") && word[1] && word[2])
        return set_net_load(word[1], atoi(word[2]), amount(word[3])) ? -1 : 1;
    else
        return 0;
    return 1;
}

static int one_shot(const char *what, char **word, int64_t *result)
{
    *result = (int64_t)count(word[1]);
    if (!strcmp(what, "cpu-work"))
        do_cpu_work(count(word[1]));
    else if (!strcmp(what, "cpu-burn-seconds"))
        burn_cpu(amount(word[1]));
    else if (!strcmp(what, "disk-write") || !strcmp(what, "disk-read"))
        *result = disk_transfer(word[2] ? word[2] : "/dev/vda",
                                count(word[1]), what[5] == 'w');
    else if (!strcmp(what, "net-send") && word[1] && word[2] && word[3])
        *result = net_send(word[2], atoi(word[3]), count(word[1]));
    else
        return 0;
    return 1;
}

static void obey(char *line)
{
    char *word[6] = {0}, *rest = 0;
    int known;
    int64_t result = 0;
    uint64_t start = now_ns();

    word[0] = strtok_r(line, " \r\t", &rest);
    if (!word[0])
        return;
    for (int i = 1; i < 6; i++)
        word[i] = strtok_r(0, " \r\t", &rest);
    if (!strcmp(word[0], "report")) {
        report();
        say("done report\n");
        return;
    }
    known = set_load(word[0], word);
    if (known == 1) {
        loaded = 1;
        say("done %s\n", word[0]);
    } else if (!known && one_shot(word[0], word, &result)) {
        say("done %s %lld %llu\n", word[0], (long long)result,
            (unsigned long long)(now_ns() - start));
    } else {
        say("error %s\n", word[0]);
    }
}

static void listen_for_commands(void)
{
    char line[256];
    size_t used = 0;

    for (;;) {
        char byte;

        if (read(port, &byte, 1) != 1) {
            sleep_until_ns(now_ns() + 100000000u);
            continue;
        }
        if (byte == '\n') {
            line[used] = 0;
            obey(line);
            used = 0;
        } else if (used < sizeof(line) - 1) {
            line[used++] = byte;
        }
    }
}

int main(void)
{
    pthread_t thread;

    mount_filesystems();
    load_modules();
    configure_network();
    open_port();
    start_cpu_load();
    start_memory_load();
    start_net_load();
    start_tcp_load();
    pthread_create(&thread, 0, report_often, 0);
    printf("guest ready\n");
    say("ready\n");
    listen_for_commands();
    return 0;
}
