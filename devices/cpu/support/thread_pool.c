#include "devices/cpu/support/thread_pool.h"

#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "kernels/kernels.h"

/* A leader's loop in one word, so that a claim is one compare-and-swap that fails when the loop has
 * ended meanwhile: loop number in the upper 32 bits, then units, then the next unit. */
#define WORD_UNITS(w) ((uint32_t)((w) >> 16) & 0xffff)
#define WORD_NEXT(w) ((uint32_t)(w)&0xffff)

typedef struct crew_leader {
    _Atomic uint64_t word;
    _Atomic uint32_t done;       /* units; futex of the leader when it has waited long */
    _Atomic uint32_t is_waiting; /* the leader sleeps on `done` */
    /* Written only while no unit is left, read only after a claim. */
    thread_pool_work work;
    void *context;
    bool was_late; /* the leader's own */
} __attribute__((aligned(128))) crew_leader;

typedef struct crew_worker {
    /* Held while the worker runs units: contended only by whoever changes its memory. */
    pthread_mutex_t lock;
    pthread_t thread;
    thread_pool *crew;
    int number;
    bool is_started;
    _Atomic uint64_t joined_ns;
} __attribute__((aligned(128))) crew_worker;

struct thread_pool {
    int leader_count, helper_count, cores;
    crew_leader *leaders;
    crew_worker *workers;                                /* leaders' first */
    _Atomic uint64_t open __attribute__((aligned(128))); /* leaders that take helpers */
    _Atomic int busy;                                    /* threads at work */
    _Atomic uint32_t wake, sleepers;
    _Atomic bool is_stopping;
};

static void pause_core(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void wait_on(_Atomic uint32_t *word, uint32_t seen)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void wake_on(_Atomic uint32_t *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

/* Takes and runs one unit; false when none is left. */
static bool run_unit(crew_leader *l, int worker, uint64_t *word)
{
    while (WORD_NEXT(*word) < WORD_UNITS(*word)) {
        if (!atomic_compare_exchange_weak_explicit(&l->word, word, *word + 1, memory_order_acquire,
                                                   memory_order_acquire))
            continue;
        uint32_t units = WORD_UNITS(*word);
        l->work(l->context, worker, WORD_NEXT(*word));
        if (atomic_fetch_add(&l->done, 1) + 1 == units && atomic_load(&l->is_waiting))
            wake_on(&l->done, 1);
        return true;
    }
    return false;
}

static bool is_wanted(const thread_pool *c)
{
    return atomic_load_explicit(&c->busy, memory_order_relaxed) <= c->cores;
}

/* Helps one leader until it closes, or its core is needed. */
static void help(thread_pool *c, crew_worker *w, int leader)
{
    crew_leader *l = &c->leaders[leader];
    uint64_t bit = UINT64_C(1) << leader;
    while (is_wanted(c)) {
        uint64_t word = atomic_load_explicit(&l->word, memory_order_acquire);
        if (run_unit(l, w->number, &word))
            continue;
        if (!(atomic_load_explicit(&c->open, memory_order_relaxed) & bit))
            return;
        pause_core();
    }
}

static bool take_core(thread_pool *c)
{
    int busy = atomic_load_explicit(&c->busy, memory_order_relaxed);
    while (busy < c->cores)
        if (atomic_compare_exchange_weak_explicit(&c->busy, &busy, busy + 1, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    return false;
}

static bool try_to_help(thread_pool *c, crew_worker *w)
{
    uint64_t open = atomic_load_explicit(&c->open, memory_order_relaxed);
    if (open == 0 || !take_core(c))
        return false;
    uint64_t start_ns = clock_now_ns();
    pthread_mutex_lock(&w->lock);
    /* Helpers begin at different leaders, to spread. */
    int turn = w->number % 64;
    uint64_t turned = turn ? open >> turn | open << (64 - turn) : open;
    help(c, w, (__builtin_ctzll(turned) + turn) % 64);
    pthread_mutex_unlock(&w->lock);
    atomic_fetch_sub_explicit(&c->busy, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&w->joined_ns, clock_now_ns() - start_ns, memory_order_relaxed);
    return true;
}

static void *helper_main(void *worker)
{
    crew_worker *w = worker;
    thread_pool *c = w->crew;
    char name[16];
    snprintf(name, sizeof name, "helper %d", w->number - c->leader_count);
    pthread_setname_np(pthread_self(), name);
    kernels_prepare_thread();
    uint64_t idle_since_ns = clock_now_ns();
    while (!atomic_load_explicit(&c->is_stopping, memory_order_relaxed)) {
        if (try_to_help(c, w)) {
            idle_since_ns = clock_now_ns();
            continue;
        }
        for (int i = 0; i < 64; i++)
            pause_core();
        if (clock_now_ns() - idle_since_ns < THREAD_POOL_SPIN_NS)
            continue;
        /* Whoever calls opens first and then looks for sleepers; we the other way round. */
        uint32_t seen = atomic_load(&c->wake);
        atomic_fetch_add(&c->sleepers, 1);
        if ((atomic_load(&c->open) == 0 || atomic_load(&c->busy) >= c->cores) &&
            !atomic_load(&c->is_stopping))
            wait_on(&c->wake, seen);
        atomic_fetch_sub(&c->sleepers, 1);
        idle_since_ns = clock_now_ns();
    }
    return NULL;
}

status thread_pool_create(int leaders, int cores, thread_pool **out)
{
    assert(leaders > 0 && cores > 0);
    int helpers = cores - 1, workers = leaders + helpers;
    thread_pool *c = aligned_alloc(128, sizeof *c);
    if (c)
        memset(c, 0, sizeof *c);
    if (c) {
        c->leaders = aligned_alloc(128, (size_t)leaders * sizeof *c->leaders);
        c->workers = aligned_alloc(128, (size_t)workers * sizeof *c->workers);
    }
    if (!c || !c->leaders || !c->workers) {
        if (c) {
            free(c->leaders);
            free(c->workers);
        }
        free(c);
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %d workers", workers);
    }
    memset(c->leaders, 0, (size_t)leaders * sizeof *c->leaders);
    memset(c->workers, 0, (size_t)workers * sizeof *c->workers);
    c->leader_count = leaders;
    c->helper_count = helpers;
    c->cores = cores;
    for (int i = 0; i < workers; i++) {
        c->workers[i].crew = c;
        c->workers[i].number = i;
        pthread_mutex_init(&c->workers[i].lock, NULL);
    }
    for (int i = leaders; i < workers; i++) {
        crew_worker *w = &c->workers[i];
        int failure = pthread_create(&w->thread, NULL, helper_main, w);
        if (failure) {
            thread_pool_destroy(c);
            return status_fail(STATUS_RESOURCE_EXHAUSTED, "a helper thread of the CPU: %s",
                               strerror(failure));
        }
        w->is_started = true;
    }
    *out = c;
    return STATUS_OK;
}

void thread_pool_destroy(thread_pool *c)
{
    if (!c)
        return;
    assert(atomic_load(&c->open) == 0);
    atomic_store(&c->is_stopping, true);
    atomic_fetch_add(&c->wake, 1);
    wake_on(&c->wake, c->helper_count);
    for (int i = 0; i < thread_pool_workers(c); i++) {
        if (c->workers[i].is_started)
            pthread_join(c->workers[i].thread, NULL);
        pthread_mutex_destroy(&c->workers[i].lock);
    }
    free(c->leaders);
    free(c->workers);
    free(c);
}

int thread_pool_workers(const thread_pool *c)
{
    return c->leader_count + c->helper_count;
}

int thread_pool_begin(thread_pool *c, int leader)
{
    assert(leader >= 0 && leader < c->leader_count);
    pthread_mutex_lock(&c->workers[leader].lock);
    c->leaders[leader].was_late = false;
    int busy = atomic_fetch_add_explicit(&c->busy, 1, memory_order_relaxed) + 1;
    if (leader >= THREAD_POOL_LEADERS_MAX || busy >= c->cores)
        return 0;
    int idle = c->cores - busy;
    return idle < c->helper_count ? idle : c->helper_count;
}

void thread_pool_end(thread_pool *c, int leader)
{
    if (leader < THREAD_POOL_LEADERS_MAX)
        atomic_fetch_and(&c->open, ~(UINT64_C(1) << leader));
    atomic_fetch_sub_explicit(&c->busy, 1, memory_order_relaxed);
    pthread_mutex_unlock(&c->workers[leader].lock);
}

void thread_pool_call(thread_pool *c, int leader, int wanted)
{
    assert(leader < THREAD_POOL_LEADERS_MAX);
    atomic_fetch_or(&c->open, UINT64_C(1) << leader);
    if (wanted > 0 && atomic_load(&c->sleepers) > 0) {
        atomic_fetch_add(&c->wake, 1);
        wake_on(&c->wake, wanted);
    }
}

static void wait_for_helpers(crew_leader *l, uint32_t units)
{
    for (int i = 0; i < 4000; i++) {
        if (atomic_load_explicit(&l->done, memory_order_acquire) == units)
            return;
        pause_core();
    }
    /* A helper has lost its core to somebody else in the middle of a unit. */
    l->was_late = true;
    atomic_store(&l->is_waiting, 1);
    for (uint32_t done; (done = atomic_load(&l->done)) != units;)
        wait_on(&l->done, done);
    atomic_store_explicit(&l->is_waiting, 0, memory_order_relaxed);
}

void thread_pool_run(thread_pool *c, int leader, thread_pool_work work, void *context, size_t units)
{
    assert(units <= THREAD_POOL_UNITS_MAX);
    crew_leader *l = &c->leaders[leader];
    uint64_t word = atomic_load_explicit(&l->word, memory_order_relaxed);
    assert(WORD_NEXT(word) == WORD_UNITS(word));
    if (units == 0)
        return;
    l->work = work;
    l->context = context;
    atomic_store_explicit(&l->done, 0, memory_order_relaxed);
    word = ((word >> 32) + 1) << 32 | (uint64_t)units << 16;
    atomic_store_explicit(&l->word, word, memory_order_release);
    while (run_unit(l, leader, &word))
        word = atomic_load_explicit(&l->word, memory_order_acquire);
    wait_for_helpers(l, (uint32_t)units);
}

bool thread_pool_was_late(const thread_pool *c, int leader)
{
    return c->leaders[leader].was_late;
}

void thread_pool_lock_worker(thread_pool *c, int worker)
{
    pthread_mutex_lock(&c->workers[worker].lock);
}

void thread_pool_unlock_worker(thread_pool *c, int worker)
{
    pthread_mutex_unlock(&c->workers[worker].lock);
}

uint64_t thread_pool_helper_ns(const thread_pool *c)
{
    uint64_t sum = 0;
    for (int i = c->leader_count; i < c->leader_count + c->helper_count; i++)
        sum += atomic_load_explicit(&c->workers[i].joined_ns, memory_order_relaxed);
    return sum;
}
