#include <criterion/criterion.h>

#include "batcher/job/pool.h"

#define IDLE_BYTES ((size_t)1 << 20)

Test(job_pool, a_ceiling_on_jobs)
{
    job_pool pool;
    job *jobs[3];
    job_pool_init(&pool, 3, IDLE_BYTES);
    for (int i = 0; i < 3; i++)
        cr_assert_not_null(jobs[i] = job_pool_acquire(&pool));
    cr_assert_null(job_pool_acquire(&pool));
    job_pool_release(&pool, jobs[1]);
    cr_assert_eq(job_pool_acquire(&pool), jobs[1], "the one released last");
    cr_assert_null(job_pool_acquire(&pool));
    for (int i = 0; i < 3; i++)
        job_pool_release(&pool, jobs[i]);
    job_pool_dispose(&pool);
}

Test(job_pool, a_job_comes_back_empty_and_keeps_its_memory)
{
    job_pool pool;
    job_pool_init(&pool, 1, IDLE_BYTES);
    job *j = job_pool_acquire(&pool);
    j->rows = 7;
    j->result = STATUS_INTERNAL;
    atomic_store(&j->is_cancelled, true);
    void *memory = arena_allocate(&j->memory, 1000);
    job_pool_release(&pool, j);
    cr_assert_eq(pool.idle_bytes, sizeof *j + arena_held_bytes(&j->memory));
    cr_assert_eq(job_pool_acquire(&pool), j);
    cr_assert(j->rows == 0 && j->result == STATUS_OK && !atomic_load(&j->is_cancelled));
    cr_assert_eq(j->deadline_ns, UINT64_MAX);
    cr_assert_eq(arena_allocate(&j->memory, 1000), memory, "the block was kept");
    cr_assert_eq(pool.idle_bytes, 0);
    job_pool_release(&pool, j);
    job_pool_dispose(&pool);
}

Test(job_pool, idle_memory_stays_under_its_ceiling)
{
    job_pool pool;
    job *jobs[100];
    job_pool_init(&pool, 100, IDLE_BYTES);
    for (int i = 0; i < 100; i++) {
        jobs[i] = job_pool_acquire(&pool);
        cr_assert_not_null(arena_allocate(&jobs[i]->memory, i % 2 ? 20000 : IDLE_BYTES));
    }
    for (int i = 0; i < 100; i++) {
        job_pool_release(&pool, jobs[i]);
        cr_assert_leq(pool.idle_bytes, IDLE_BYTES);
    }
    cr_assert_lt(pool.job_count, 100, "what is over the ceiling is freed");
    cr_assert_gt(pool.job_count, 10);
    job_pool_dispose(&pool);
    cr_assert_eq(pool.job_count, 0);
}
