#include <criterion/criterion.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/large_memory.h"
#include "server/offload/pool.h"

/* Tasks write down when they begin; one that is held waits for its semaphore. */
typedef struct note {
    offload_task task; /* first */
    int id;
    bool is_held;
    sem_t go_on;
} note;

static offload_pool *pool;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int order[64], begun;
static sem_t begins, ends;

static void run(offload_task *task)
{
    note *n = (note *)task;
    pthread_mutex_lock(&lock);
    order[begun++] = n->id;
    pthread_mutex_unlock(&lock);
    sem_post(&begins);
    if (n->is_held)
        sem_wait(&n->go_on);
    sem_post(&ends);
}

static note *make(int id, const void *source, bool is_held)
{
    note *n = calloc(1, sizeof *n);
    *n = (note){.task = {.source = source, .run = run}, .id = id, .is_held = is_held};
    sem_init(&n->go_on, 0, 0);
    return n;
}

static void wait_for(sem_t *what, int count)
{
    for (int i = 0; i < count; i++)
        sem_wait(what);
}

static void begin(int threads, int waiting_max)
{
    sem_init(&begins, 0, 0);
    sem_init(&ends, 0, 0);
    cr_assert_eq(offload_pool_create(threads, waiting_max, &pool), STATUS_OK);
}

TestSuite(offload_pool, .timeout = 300);

Test(offload_pool, one_source_is_served_in_order)
{
    int a;
    note *notes[10], *first = make(100, &a, true);
    begin(1, 64);
    cr_assert(offload_pool_submit(pool, &first->task, false));
    wait_for(&begins, 1);
    for (int i = 0; i < 10; i++) {
        notes[i] = make(i, &a, false);
        cr_assert(offload_pool_submit(pool, &notes[i]->task, false));
    }
    cr_assert_eq(offload_pool_waiting(pool), 10);
    sem_post(&first->go_on);
    wait_for(&ends, 11);
    for (int i = 0; i < 10; i++)
        cr_assert_eq(order[1 + i], i);
    offload_pool_destroy(pool);
    for (int i = 0; i < 10; i++)
        free(notes[i]);
    free(first);
}

Test(offload_pool, the_source_with_the_fewest_running_comes_first)
{
    int a, b;
    begin(2, 64);
    note *running = make(0, &a, true), *other = make(1, &b, true), *many[3], *late;
    cr_assert(offload_pool_submit(pool, &running->task, false));
    cr_assert(offload_pool_submit(pool, &other->task, false));
    wait_for(&begins, 2);
    for (int i = 0; i < 3; i++) {
        many[i] = make(10 + i, &a, false);
        cr_assert(offload_pool_submit(pool, &many[i]->task, false));
    }
    late = make(20, &b, false);
    cr_assert(offload_pool_submit(pool, &late->task, false));
    sem_post(&other->go_on);
    wait_for(&begins, 4);
    cr_assert_eq(order[2], 20, "nothing of b runs; of a, one does");
    sem_post(&running->go_on);
    wait_for(&ends, 6);
    offload_pool_destroy(pool);
    for (int i = 0; i < 3; i++)
        free(many[i]);
    free(running);
    free(other);
    free(late);
}

Test(offload_pool, the_queue_is_bounded_for_all_and_for_one)
{
    int sources[5];
    note *notes[20], *first = make(99, &sources[4], true);
    int count = 0;
    begin(1, 8);
    cr_assert(offload_pool_submit(pool, &first->task, false));
    wait_for(&begins, 1);
    for (int s = 0; s < 4; s++) {
        for (int i = 0; i < 2; i++) {
            notes[count] = make(count, &sources[s], false);
            cr_assert(offload_pool_submit(pool, &notes[count++]->task, false));
        }
        note *beyond = make(0, &sources[s], false);
        cr_assert_not(offload_pool_submit(pool, &beyond->task, false), "a quarter of the queue");
        free(beyond);
    }
    note *full = make(50, &sources[4], false);
    cr_assert_not(offload_pool_submit(pool, &full->task, false));
    cr_assert(offload_pool_submit(pool, &full->task, true));
    sem_post(&first->go_on);
    offload_pool_destroy(pool);
    cr_assert_eq(begun, 10, "what waits runs before the end");
    for (int i = 0; i < count; i++)
        free(notes[i]);
    free(full);
    free(first);
}

static bool is_mapped(void *p)
{
    unsigned char is_resident;
    return mincore(p, 1, &is_resident) == 0;
}

Test(offload_pool, large_memory_is_freed_on_a_helper)
{
    int a;
    size_t bytes = 8u << 20;
    void *later = large_memory_grow(NULL, 0, bytes), *now = large_memory_grow(NULL, 0, bytes);
    note *first = make(0, &a, true);
    begin(1, 1);
    cr_assert(offload_pool_submit(pool, &first->task, false));
    wait_for(&begins, 1);
    offload_pool_free(pool, later, bytes);
    cr_assert(is_mapped(later), "the only helper is busy");
    offload_pool_free(NULL, now, bytes);
    cr_assert_not(is_mapped(now), "without helpers");
    sem_post(&first->go_on);
    offload_pool_destroy(pool);
    cr_assert_not(is_mapped(later));
    free(first);
}
