/* Callers, helpers and a thread that changes the memory of workers, all at once: every unit of
 * every loop runs exactly once, and no two run under one worker number at once. Stand-alone, for
 * the thread sanitizer. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices/cpu/threads/thread_pool.h"

#define CALLERS 3
#define CORES 4
#define WORKERS (CALLERS + CORES - 1)
#define ROUNDS 400
#define UNITS_MAX 40

static thread_pool *pool;
static int *memory[WORKERS]; /* not atomic: each belongs to one worker at a time */
static _Atomic bool is_over;
static _Atomic uint64_t helped;

typedef struct loop {
    int caller;
    int runs[UNITS_MAX]; /* not atomic: a unit runs once, and the caller reads after the loop */
} loop;

static void work(void *context, int worker, size_t unit)
{
    loop *l = context;
    l->runs[unit]++;
    memory[worker][0]++;
    if (worker >= CALLERS)
        atomic_fetch_add(&helped, 1);
    for (volatile int i = 0; i < 3000; i++)
        ;
}

static void *run_loops(void *number)
{
    int caller = *(int *)number;
    loop l = {.caller = caller};
    unsigned seed = (unsigned)caller + 1;
    for (int round = 0; round < ROUNDS; round++) {
        int idle = thread_pool_begin(pool, caller);
        assert(idle >= 0 && idle < CORES);
        if (round % 3 != 0)
            thread_pool_call_helpers(pool, caller,
                                     thread_pool_note_loop(pool, caller, 200000)
                                         ? idle - thread_pool_awake_helpers(pool)
                                         : idle);
        for (int phase = 0; phase < 5; phase++) {
            size_t units = (size_t)(rand_r(&seed) % (UNITS_MAX + 1));
            memset(l.runs, 0, sizeof l.runs);
            thread_pool_run(pool, caller, work, &l, units);
            for (size_t i = 0; i < UNITS_MAX; i++)
                if (l.runs[i] != (i < units)) {
                    fprintf(stderr, "unit %zu of %zu ran %d times\n", i, units, l.runs[i]);
                    abort();
                }
        }
        thread_pool_end(pool, caller);
    }
    return NULL;
}

static void *change_memory(void *unused)
{
    (void)unused;
    for (int i = 0; !atomic_load(&is_over); i++) {
        int worker = i % WORKERS;
        int *fresh = calloc(1, sizeof *fresh);
        thread_pool_lock_worker(pool, worker);
        int *old = memory[worker];
        memory[worker] = fresh;
        thread_pool_unlock_worker(pool, worker);
        free(old);
    }
    return NULL;
}

int main(void)
{
    pthread_t callers[CALLERS], changer;
    int numbers[CALLERS];
    if (thread_pool_create(CALLERS, CORES, &pool)) {
        fprintf(stderr, "%s\n", status_message());
        return 1;
    }
    assert(thread_pool_workers(pool) == WORKERS);
    for (int i = 0; i < WORKERS; i++)
        memory[i] = calloc(1, sizeof(int));
    int failed = pthread_create(&changer, NULL, change_memory, NULL);
    for (int i = 0; i < CALLERS; i++) {
        numbers[i] = i;
        failed |= pthread_create(&callers[i], NULL, run_loops, &numbers[i]);
    }
    assert(!failed);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    atomic_store(&is_over, true);
    pthread_join(changer, NULL);
    thread_pool_destroy(pool);
    for (int i = 0; i < WORKERS; i++)
        free(memory[i]);
    printf("every unit ran once; helpers ran %llu\n1 passed, 0 failed, 0 skipped\n",
           (unsigned long long)atomic_load(&helped));
    return 0;
}
