/* After warm-up the batcher allocates nothing: counts every allocation of the process while jobs of
 * many shapes go round. Prints one line; exit status 0 when the count is 0. */
#include <stdio.h>
#include <time.h>

#include "tests/unit/batcher/fake_device.h"

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static _Atomic int64_t allocations;

void *malloc(size_t n)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t m)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_calloc(n, m);
}
void *realloc(void *p, size_t n)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_realloc(p, n);
}
void *aligned_alloc(size_t a, size_t n)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_memalign(a, n);
}

static mailbox box;

static void on_back(job *j)
{
    mailbox_post(&box, &j->node);
}

static int64_t go_round(scheduler *s, job_pool *pool, model *m, int jobs)
{
    int64_t back = 0, right = 0;
    for (int i = 0; i < jobs;) {
        int burst = 0;
        for (; burst < 20 && i < jobs; burst++, i++)
            submit_admitted(s, fake_job(pool, m, 1 + i % 11, 1 + i % 16, 1000 + i, on_back, NULL));
        for (back = 0; back < burst;) {
            for (mailbox_node *n = mailbox_take_all(&box), *next; n; n = next) {
                next = n->next;
                right += fake_is_right((job *)n);
                job_pool_release(pool, (job *)n);
                back++;
            }
        }
    }
    return right;
}

int main(void)
{
    static fake_device cpu;
    fake_device_init(&cpu, "cpu", 2);
    device *devices[] = {&cpu.base};
    model *m = fake_model_create(devices, 1, 0, true, true);
    scheduler *s;
    job_pool pool;
    job_pool_init(&pool, 64, (size_t)64 << 20);
    mailbox_init(&box);
    if (scheduler_create(&(scheduler_options){0}, devices, 1, &s))
        return 2;
    int64_t right = go_round(s, &pool, m, 4000);
    int64_t before = atomic_load(&allocations);
    right += go_round(s, &pool, m, 20000);
    int64_t counted = atomic_load(&allocations) - before;
    printf("%s: %lld allocations in 20000 jobs\n",
           counted == 0 && right == 24000 ? "passed" : "FAILED", (long long)counted);
    scheduler_destroy(s);
    job_pool_dispose(&pool);
    fake_model_destroy(m);
    return counted == 0 && right == 24000 ? 0 : 1;
}
