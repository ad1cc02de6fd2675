/*
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * Flows: who may move how much from when on. Several threads may share one.
 */
#include "guest.h"

#define PERIOD_NS 20000000u

/* Takes what one block costs; a slow flow must be able to save up for one. */
static int take(struct flow *flow)
{
    double block = flow->block, backlog = flow->wanted.rate / 2;

    bucket_fill(&flow->wanted);
    if (flow->wanted.level >= block ||
        (backlog < block && flow->wanted.level >= backlog)) {
        flow->wanted.level -= block;
        return 1;
    }
    return 0;
}

unsigned await_turn(struct flow *flow, unsigned number)
{
    unsigned block;

    pthread_mutex_lock(&flow->lock);
    while (flow->wanted.rate == 0 || number >= flow->depth)
        pthread_cond_wait(&flow->changed, &flow->lock);
    block = flow->block;
    if (flow->wanted.rate > 0 && !take(flow))
        block = 0;
    pthread_mutex_unlock(&flow->lock);
    if (!block)
        sleep_until_ns(now_ns() + PERIOD_NS);
    return block;
}

void set_flow(struct flow *flow, double rate, unsigned block, unsigned depth)
{
    pthread_mutex_lock(&flow->lock);
    bucket_set(&flow->wanted, rate);
    flow->block = block;
    flow->depth = depth;
    pthread_cond_broadcast(&flow->changed);
    pthread_mutex_unlock(&flow->lock);
}
