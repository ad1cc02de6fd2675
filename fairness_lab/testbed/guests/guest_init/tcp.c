/*
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * Network load over TCP: connections that send, or that receive what the
 * other end sends without being asked.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest.h"

#define MAX_FLOWS 16u
#define CHUNK 65536u

struct streams {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct sockaddr_storage peer;
    socklen_t length;
    unsigned wanted;
    unsigned version;
    int sends;
};

struct stream {
    struct streams *all;
    unsigned number;
};

static struct streams sending = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0, 0, 1,
};
static struct streams receiving = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0, 0, 0,
};

/* Waits until this connection shall be there; gives a socket, or -1. */
static int opened(struct stream *one, unsigned *version)
{
    struct streams *all = one->all;
    struct sockaddr_storage peer;
    socklen_t length;
    int way;

    pthread_mutex_lock(&all->lock);
    while (one->number >= all->wanted)
        pthread_cond_wait(&all->changed, &all->lock);
    peer = all->peer;
    length = all->length;
    *version = all->version;
    pthread_mutex_unlock(&all->lock);
    way = socket(peer.ss_family, SOCK_STREAM, 0);
    if (way >= 0 && connect(way, (struct sockaddr *)&peer, length)) {
        close(way);
        return -1;
    }
    return way;
}

static int is_current(struct streams *all, unsigned version)
{
    int result;

    pthread_mutex_lock(&all->lock);
    result = all->version == version;
    pthread_mutex_unlock(&all->lock);
    return result;
}

static void *move_chunks(void *argument)
{
    struct stream *one = argument;
    static char nothing[CHUNK];
    static _Thread_local char swallowed[CHUNK];

    for (;;) {
        unsigned version;
        int way = opened(one, &version);
        ssize_t moved = 1;

        while (way >= 0 && moved > 0 && is_current(one->all, version)) {
            if (one->all->sends)
                moved = send(way, nothing, sizeof(nothing), MSG_NOSIGNAL);
            else
                moved = recv(way, swallowed, sizeof(swallowed), 0);
            if (moved > 0)
                atomic_fetch_add(one->all->sends ? &done.sent
                                                 : &done.received,
                                 (unsigned long long)moved);
        }
        if (way >= 0)
            close(way);
        else
            sleep_until_ns(now_ns() + 200000000u);
    }
    return 0;
}

void start_tcp_load(void)
{
    static struct stream some[2][MAX_FLOWS];
    pthread_attr_t small;
    pthread_t thread;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 262144);
    for (unsigned i = 0; i < 2 * MAX_FLOWS; i++) {
        struct stream *one = &some[i % 2][i / 2];

        one->all = i % 2 ? &receiving : &sending;
        one->number = i / 2;
        pthread_create(&thread, &small, move_chunks, one);
    }
}

int set_tcp_load(const char *host, int port, unsigned flows, int sends)
{
    struct streams *all = sends ? &sending : &receiving;
    struct sockaddr_storage peer = {0};
    struct sockaddr_in *four = (struct sockaddr_in *)&peer;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&peer;
    socklen_t length = sizeof(*four);

    if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons((uint16_t)port);
    } else {
        if (inet_pton(AF_INET6, host, &six->sin6_addr) != 1)
            return -1;
        six->sin6_family = AF_INET6;
        six->sin6_port = htons((uint16_t)port);
        length = sizeof(*six);
    }
    pthread_mutex_lock(&all->lock);
    all->peer = peer;
    all->length = length;
    all->wanted = flows < MAX_FLOWS ? flows : MAX_FLOWS;
    all->version++;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
    return 0;
}
