#ifndef BATCHER_JOB_POOL_H
#define BATCHER_JOB_POOL_H

#include "batcher/job/job.h"

/* A thread's own jobs, kept with their memory and used again: in steady state nothing is allocated.
 * It has two ceilings: how many jobs exist, and how much memory those that are idle hold. Owned by
 * one thread. */
typedef struct job_pool {
    job *idle;     /* linked by `next`; the one released last is acquired first */
    int jobs_max;  /* ceiling of `job_count` */
    int job_count; /* in use or idle */
    size_t idle_bytes_max;
    size_t idle_bytes; /* of idle jobs, their arenas included */
} job_pool;

/* At most `jobs_max` jobs exist at once; idle ones hold at most `idle_bytes_max` bytes. */
void job_pool_init(job_pool *pool, int jobs_max, size_t idle_bytes_max);

/* Frees the idle jobs. Every job must have been released. */
void job_pool_dispose(job_pool *pool);

/* A job as job_init() leaves it, perhaps with empty memory to use. NULL: `jobs_max` are in use, or
 * memory is out. */
job *job_pool_acquire(job_pool *pool);

/* Counts `count` jobs that somebody else will create (malloc, job_init) and that are released here;
 * false: there is no room for so many. The second gives back what is not needed. */
bool job_pool_reserve(job_pool *pool, int count) MUST_CHECK;
void job_pool_unreserve(job_pool *pool, int count);

/* Takes the job back: resets it, which releases its model, and keeps it, its memory too, as far as
 * `idle_bytes_max` allows. */
void job_pool_release(job_pool *pool, job *j);

#endif
