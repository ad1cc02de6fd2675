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
