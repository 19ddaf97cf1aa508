#include "batcher/job/pool.h"

#include <assert.h>
#include <stdlib.h>

/* One idle job keeps at most this part of the ceiling, so that a few large requests do not take
 * the memory of all others. */
#define KEEP_PART 16

void job_pool_init(job_pool *pool, int jobs_max, size_t idle_bytes_max)
{
    assert(jobs_max > 0);
    *pool = (job_pool){.jobs_max = jobs_max, .idle_bytes_max = idle_bytes_max};
}

static size_t held_bytes(const job *j)
{
    return sizeof *j + arena_held_bytes(&j->memory);
}

static void destroy(job_pool *pool, job *j)
{
    job_dispose(j);
    free(j);
    pool->job_count--;
}

job *job_pool_acquire(job_pool *pool)
{
    assert(pool->jobs_max > 0);
    job *j = pool->idle;
    if (j != NULL) {
        pool->idle = j->next;
        pool->idle_bytes -= held_bytes(j);
        j->next = NULL;
        return j;
    }
    if (pool->job_count == pool->jobs_max)
        return NULL;
    j = malloc(sizeof *j);
    if (j == NULL)
        return NULL;
    job_init(j);
    pool->job_count++;
    return j;
}

bool job_pool_reserve(job_pool *pool, int count)
{
    if (count > pool->jobs_max - pool->job_count)
        return false;
    pool->job_count += count;
    return true;
}

void job_pool_unreserve(job_pool *pool, int count)
{
    assert(count >= 0 && count <= pool->job_count);
    pool->job_count -= count;
}

void job_pool_release(job_pool *pool, job *j)
{
    size_t room = pool->idle_bytes_max - pool->idle_bytes;
    if (room < sizeof *j) {
        destroy(pool, j);
        return;
    }
    size_t part = pool->idle_bytes_max / KEEP_PART;
    job_reset(j, room - sizeof *j < part ? room - sizeof *j : part);
    j->next = pool->idle;
    pool->idle = j;
    pool->idle_bytes += held_bytes(j);
    assert(pool->idle_bytes <= pool->idle_bytes_max);
}

void job_pool_dispose(job_pool *pool)
{
    while (pool->idle != NULL) {
        job *j = pool->idle;
        pool->idle = j->next;
        destroy(pool, j);
    }
    assert(pool->job_count == 0);
    pool->idle_bytes = 0;
}
