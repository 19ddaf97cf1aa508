#include "server/offload/pool.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/large_memory.h"

#define SOURCE_PART 4 /* of the queue, for one source */
#define NICE 5        /* above the loops' and workers' */
#define FREE_LATER_BYTES ((size_t)4 << 20)

typedef struct helper {
    pthread_t thread;
    offload_pool *pool;
    const void *source; /* of the task that it runs; NULL: idle */
} helper;

struct offload_pool {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    offload_task *oldest, **newest; /* in order of arrival */
    int waiting, waiting_max;
    bool is_ending;
    int helper_count;
    helper helpers[];
};

static int count_running(const offload_pool *pool, const void *source)
{
    int count = 0;
    for (int i = 0; i < pool->helper_count; i++)
        count += pool->helpers[i].source == source;
    return count;
}

/* Takes the next task out of the queue; there is one. */
static offload_task *take(offload_pool *pool)
{
    offload_task **best = NULL;
    int fewest = INT_MAX;
    for (offload_task **at = &pool->oldest; *at != NULL && fewest > 0; at = &(*at)->next) {
        int running = count_running(pool, (*at)->source);
        if (running < fewest) {
            fewest = running;
            best = at;
        }
    }
    offload_task *task = *best;
    *best = task->next;
    if (pool->newest == &task->next)
        pool->newest = best;
    pool->waiting--;
    return task;
}

static void *run(void *context)
{
    helper *h = context;
    offload_pool *pool = h->pool;
    setpriority(PRIO_PROCESS, 0, NICE); /* on Linux: of this thread */
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (pool->oldest == NULL && !pool->is_ending)
            pthread_cond_wait(&pool->changed, &pool->lock);
        if (pool->oldest == NULL)
            break;
        offload_task *task = take(pool);
        h->source = task->source;
        pthread_mutex_unlock(&pool->lock);
        task->run(task);
        pthread_mutex_lock(&pool->lock);
        h->source = NULL;
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

status offload_pool_create(int threads, int waiting_max, offload_pool **out)
{
    offload_pool *pool = calloc(1, sizeof *pool + (size_t)threads * sizeof(helper));
    if (pool == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %d helper threads", threads);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->changed, NULL);
    pool->newest = &pool->oldest;
    pool->waiting_max = waiting_max;
    pthread_mutex_lock(&pool->lock);
    for (; pool->helper_count < threads; pool->helper_count++) {
        helper *h = &pool->helpers[pool->helper_count];
        h->pool = pool;
        if (pthread_create(&h->thread, NULL, run, h) != 0)
            break;
    }
    bool is_complete = pool->helper_count == threads;
    pthread_mutex_unlock(&pool->lock);
    if (!is_complete) {
        int started = pool->helper_count;
        offload_pool_destroy(pool);
        return status_fail(STATUS_IO, "no thread for helper %d", started);
    }
    *out = pool;
    return STATUS_OK;
}

bool offload_pool_submit(offload_pool *pool, offload_task *task, bool is_urgent)
{
    pthread_mutex_lock(&pool->lock);
    int of_source = 0;
    for (const offload_task *t = pool->oldest; t != NULL && !is_urgent; t = t->next)
        of_source += t->source == task->source;
    bool is_taken = is_urgent || (pool->waiting < pool->waiting_max &&
                                  of_source * SOURCE_PART < pool->waiting_max);
    if (is_taken) {
        task->next = NULL;
        *pool->newest = task;
        pool->newest = &task->next;
        pool->waiting++;
        pthread_cond_signal(&pool->changed);
    }
    pthread_mutex_unlock(&pool->lock);
    return is_taken;
}

/* The task of a block that is to be freed lies in the block: nothing is allocated. */
typedef struct block {
    offload_task task;
    size_t bytes;
} block;

static void free_block(offload_task *task)
{
    block *b = (block *)task;
    large_memory_free(b, b->bytes);
}

void offload_pool_free(offload_pool *pool, void *p, size_t bytes)
{
    block *b = p;
    bool is_later = pool != NULL && p != NULL && bytes >= FREE_LATER_BYTES;
    if (is_later)
        *b = (block){{.source = pool, .run = free_block}, bytes};
    if (!is_later || !offload_pool_submit(pool, &b->task, true))
        large_memory_free(p, bytes);
}

int offload_pool_waiting(offload_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    int waiting = pool->waiting;
    pthread_mutex_unlock(&pool->lock);
    return waiting;
}

void offload_pool_destroy(offload_pool *pool)
{
    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->is_ending = true;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->helper_count; i++)
        pthread_join(pool->helpers[i].thread, NULL);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}
