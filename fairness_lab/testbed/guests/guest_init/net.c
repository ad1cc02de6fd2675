/*
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * Network load, and exact one-shot transfers.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest.h"

#define PAYLOAD 1400u

static struct flow sending = FLOW(PAYLOAD, 0);
static int out = -1;

static void *send_blocks(void *argument)
{
    struct flow *flow = argument;
    char payload[PAYLOAD] = {0};

    for (;;) {
        if (!await_turn(flow, 0))
            continue;
        if (send(out, payload, sizeof(payload), 0) > 0)
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

void start_net_load(void)
{
    pthread_t thread;

    pthread_create(&thread, 0, send_blocks, &sending);
    pthread_create(&thread, 0, swallow, 0);
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
    int fresh = connect_to(host, port), old = out;

    if (fresh < 0)
        return -1;
    out = fresh;
    set_flow(&sending, rate, PAYLOAD, 1);
    if (old >= 0)
        close(old);
    return 0;
}

int64_t net_send(const char *host, int port, uint64_t bytes)
{
    char payload[PAYLOAD] = {0};
    int way = connect_to(host, port);
    uint64_t total = 0;

    while (way >= 0 && total < bytes) {
        uint64_t left = bytes - total;
        size_t block = left < PAYLOAD ? (size_t)left : PAYLOAD;

        if (send(way, payload, block, 0) < 0) {
            if (errno != ENOBUFS && errno != EAGAIN)
                break;
            sleep_until_ns(now_ns() + 1000000u);
            continue;
        }
        total += block;
        atomic_fetch_add(&done.sent, block);
    }
    if (way >= 0)
        close(way);
    return (int64_t)total;
}
