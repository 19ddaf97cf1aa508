#include "devices/cpu/threads/thread_pool.h"

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

/* A caller's loop in one word, so that a claim is one compare-and-swap, which fails when the loop
 * has ended meanwhile: loop number in the upper 32 bits, then units, then the next unit. */
#define WORD_UNITS(w) ((uint32_t)((w) >> 16) & 0xffff)
#define WORD_NEXT(w) ((uint32_t)(w)&0xffff)

typedef struct pool_caller {
    _Atomic uint64_t word;
    _Atomic uint32_t done;       /* units; the futex of a caller that has waited long */
    _Atomic uint32_t is_waiting; /* the caller sleeps on `done` */
    /* Written only while no unit is left, read only after a claim. */
    thread_pool_work work;
    void *context;
    /* Only the caller uses these: apart from what helpers watch. */
    uint64_t alone_until_ns __attribute__((aligned(64))); /* after a delay */
    uint64_t loops_ns;                                    /* see thread_pool_note_loop */
    uint64_t noted_at_ns;
} __attribute__((aligned(128))) pool_caller;

typedef struct pool_worker {
    /* Held while the worker runs units; contended only when its memory changes. */
    pthread_mutex_t lock;
    pthread_t thread;
    thread_pool *pool;
    int number;
    bool is_started;
    _Atomic uint64_t joined_ns;
} __attribute__((aligned(128))) pool_worker;

struct thread_pool {
    int caller_count, helper_count, cores;
    pool_caller *callers;
    pool_worker *workers;                                /* callers, then helpers */
    _Atomic uint64_t open __attribute__((aligned(128))); /* callers that take helpers */
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

/* Claims and runs one unit; false when none is left. */
static bool run_unit(pool_caller *l, int worker, uint64_t *word)
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

static bool is_wanted(const thread_pool *p)
{
    return atomic_load_explicit(&p->busy, memory_order_relaxed) <= p->cores;
}

/* Helps one caller until it closes, or its core is needed. */
static void help(thread_pool *p, pool_worker *w, int caller)
{
    pool_caller *l = &p->callers[caller];
    uint64_t bit = UINT64_C(1) << caller;
    while (is_wanted(p)) {
        uint64_t word = atomic_load_explicit(&l->word, memory_order_acquire);
        if (run_unit(l, w->number, &word))
            continue;
        if (!(atomic_load_explicit(&p->open, memory_order_relaxed) & bit))
            return;
        pause_core();
    }
}

static bool acquire_core(thread_pool *p)
{
    int busy = atomic_load_explicit(&p->busy, memory_order_relaxed);
    while (busy < p->cores)
        if (atomic_compare_exchange_weak_explicit(&p->busy, &busy, busy + 1, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    return false;
}

static bool try_to_help(thread_pool *p, pool_worker *w)
{
    uint64_t open = atomic_load_explicit(&p->open, memory_order_relaxed);
    if (open == 0 || !acquire_core(p))
        return false;
    uint64_t start_ns = clock_now_ns();
    pthread_mutex_lock(&w->lock);
    /* Each helper starts at another caller, so that they spread. */
    int turn = w->number % 64;
    uint64_t turned = turn ? open >> turn | open << (64 - turn) : open;
    help(p, w, (__builtin_ctzll(turned) + turn) % 64);
    pthread_mutex_unlock(&w->lock);
    atomic_fetch_sub_explicit(&p->busy, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&w->joined_ns, clock_now_ns() - start_ns, memory_order_relaxed);
    return true;
}

static void *helper_main(void *worker)
{
    pool_worker *w = worker;
    thread_pool *p = w->pool;
    char name[16];
    snprintf(name, sizeof name, "helper %d", w->number - p->caller_count);
    pthread_setname_np(pthread_self(), name);
    kernels_prepare_thread();
    uint64_t idle_since_ns = clock_now_ns();
    while (!atomic_load_explicit(&p->is_stopping, memory_order_relaxed)) {
        if (try_to_help(p, w)) {
            idle_since_ns = clock_now_ns();
            continue;
        }
        for (int i = 0; i < 16; i++)
            pause_core();
        if (clock_now_ns() - idle_since_ns < THREAD_POOL_SPIN_NS)
            continue;
        /* A caller opens first and then looks for sleepers; a helper counts itself as a sleeper
         * first and then looks for open callers. */
        uint32_t seen = atomic_load(&p->wake);
        atomic_fetch_add(&p->sleepers, 1);
        if ((atomic_load(&p->open) == 0 || atomic_load(&p->busy) >= p->cores) &&
            !atomic_load(&p->is_stopping))
            wait_on(&p->wake, seen);
        atomic_fetch_sub(&p->sleepers, 1);
        idle_since_ns = clock_now_ns();
    }
    return NULL;
}

status thread_pool_create(int callers, int cores, thread_pool **out)
{
    assert(callers > 0 && cores > 0);
    int helpers = cores - 1, workers = callers + helpers;
    thread_pool *p = aligned_alloc(128, sizeof *p);
    if (p)
        memset(p, 0, sizeof *p);
    if (p) {
        p->callers = aligned_alloc(128, (size_t)callers * sizeof *p->callers);
        p->workers = aligned_alloc(128, (size_t)workers * sizeof *p->workers);
    }
    if (!p || !p->callers || !p->workers) {
        if (p) {
            free(p->callers);
            free(p->workers);
        }
        free(p);
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %d workers", workers);
    }
    memset(p->callers, 0, (size_t)callers * sizeof *p->callers);
    memset(p->workers, 0, (size_t)workers * sizeof *p->workers);
    p->caller_count = callers;
    p->helper_count = helpers;
    p->cores = cores;
    for (int i = 0; i < workers; i++) {
        p->workers[i].pool = p;
        p->workers[i].number = i;
        pthread_mutex_init(&p->workers[i].lock, NULL);
    }
    for (int i = callers; i < workers; i++) {
        pool_worker *w = &p->workers[i];
        int failure = pthread_create(&w->thread, NULL, helper_main, w);
        if (failure) {
            thread_pool_destroy(p);
            return status_fail(STATUS_RESOURCE_EXHAUSTED, "cannot start a helper thread: %s",
                               strerror(failure));
        }
        w->is_started = true;
    }
    *out = p;
    return STATUS_OK;
}

void thread_pool_destroy(thread_pool *p)
{
    if (!p)
        return;
    assert(atomic_load(&p->open) == 0);
    atomic_store(&p->is_stopping, true);
    atomic_fetch_add(&p->wake, 1);
    wake_on(&p->wake, p->helper_count);
    for (int i = 0; i < thread_pool_workers(p); i++) {
        if (p->workers[i].is_started)
            pthread_join(p->workers[i].thread, NULL);
        pthread_mutex_destroy(&p->workers[i].lock);
    }
    free(p->callers);
    free(p->workers);
    free(p);
}

int thread_pool_workers(const thread_pool *p)
{
    return p->caller_count + p->helper_count;
}

int thread_pool_begin(thread_pool *p, int caller)
{
    assert(caller >= 0 && caller < p->caller_count);
    pthread_mutex_lock(&p->workers[caller].lock);
    int busy = atomic_fetch_add_explicit(&p->busy, 1, memory_order_relaxed) + 1;
    if (caller >= THREAD_POOL_CALLERS_MAX || busy >= p->cores)
        return 0;
    int idle = p->cores - busy;
    return idle < p->helper_count ? idle : p->helper_count;
}

void thread_pool_end(thread_pool *p, int caller)
{
    if (caller < THREAD_POOL_CALLERS_MAX)
        atomic_fetch_and(&p->open, ~(UINT64_C(1) << caller));
    atomic_fetch_sub_explicit(&p->busy, 1, memory_order_relaxed);
    pthread_mutex_unlock(&p->workers[caller].lock);
}

void thread_pool_call_helpers(thread_pool *p, int caller, int wanted)
{
    assert(caller < THREAD_POOL_CALLERS_MAX);
    atomic_fetch_or(&p->open, UINT64_C(1) << caller);
    if (wanted > 0 && atomic_load(&p->sleepers) > 0) {
        atomic_fetch_add(&p->wake, 1);
        wake_on(&p->wake, wanted);
    }
}

int thread_pool_awake_helpers(const thread_pool *p)
{
    return p->helper_count - (int)atomic_load_explicit(&p->sleepers, memory_order_relaxed);
}

/* How long a caller waits for the units of others before it calls that a delay, when its own took
 * `unit_ns` each: a helper may have begun its last unit just before. */
#define PATIENCE_NS_MIN 100000
#define PATIENCE_UNITS 4
/* After a delay the caller stays alone for so many times as long: then delays cost a fifth. */
#define ALONE_DELAYS 4

static void wait_for_helpers(pool_caller *l, uint32_t units, uint64_t unit_ns)
{
    for (int i = 0; i < 1000; i++) {
        if (atomic_load_explicit(&l->done, memory_order_acquire) == units)
            return;
        pause_core();
    }
    uint64_t since_ns = clock_now_ns(), patience_ns = PATIENCE_UNITS * unit_ns;
    patience_ns = patience_ns < PATIENCE_NS_MIN ? PATIENCE_NS_MIN : patience_ns;
    while (clock_now_ns() - since_ns < patience_ns) {
        for (int i = 0; i < 64; i++)
            pause_core();
        if (atomic_load_explicit(&l->done, memory_order_acquire) == units)
            return;
    }
    /* A helper has lost its core to another program in the middle of a unit. */
    atomic_store(&l->is_waiting, 1);
    for (uint32_t done; (done = atomic_load(&l->done)) != units;)
        wait_on(&l->done, done);
    atomic_store_explicit(&l->is_waiting, 0, memory_order_relaxed);
    uint64_t now_ns = clock_now_ns();
    l->alone_until_ns = now_ns + ALONE_DELAYS * (now_ns - since_ns);
}

void thread_pool_run(thread_pool *p, int caller, thread_pool_work work, void *context, size_t units)
{
    assert(units <= THREAD_POOL_UNITS_MAX);
    pool_caller *l = &p->callers[caller];
    uint64_t word = atomic_load_explicit(&l->word, memory_order_relaxed);
    assert(WORD_NEXT(word) == WORD_UNITS(word));
    if (units == 0)
        return;
    l->work = work;
    l->context = context;
    atomic_store_explicit(&l->done, 0, memory_order_relaxed);
    word = ((word >> 32) + 1) << 32 | (uint64_t)units << 16;
    uint64_t start_ns = clock_now_ns(), own = 0;
    atomic_store_explicit(&l->word, word, memory_order_release);
    for (; run_unit(l, caller, &word); own++)
        word = atomic_load_explicit(&l->word, memory_order_acquire);
    if (atomic_load_explicit(&l->done, memory_order_acquire) != units)
        wait_for_helpers(l, (uint32_t)units, own ? (clock_now_ns() - start_ns) / own : 0);
}

bool thread_pool_was_delayed(const thread_pool *p, int caller)
{
    uint64_t until_ns = p->callers[caller].alone_until_ns;
    return until_ns > 0 && clock_now_ns() < until_ns;
}

/* A bucket that time empties and that each loop fills with twice its own time: it stays full while
 * loops are half of the time, and is empty again LOOPS_NS_MAX after the last. */
#define LOOPS_FULL_NS 60000
#define LOOPS_NS_MAX (2 * LOOPS_FULL_NS)

bool thread_pool_note_loop(thread_pool *p, int caller, uint64_t ns)
{
    pool_caller *l = &p->callers[caller];
    uint64_t now_ns = clock_now_ns(), since_ns = now_ns - l->noted_at_ns;
    uint64_t left_ns = since_ns < l->loops_ns ? l->loops_ns - since_ns : 0;
    uint64_t room_ns = LOOPS_NS_MAX - left_ns;
    l->noted_at_ns = now_ns;
    l->loops_ns = left_ns + (ns < room_ns / 2 ? 2 * ns : room_ns);
    return left_ns >= LOOPS_FULL_NS;
}

void thread_pool_lock_worker(thread_pool *p, int worker)
{
    pthread_mutex_lock(&p->workers[worker].lock);
}

void thread_pool_unlock_worker(thread_pool *p, int worker)
{
    pthread_mutex_unlock(&p->workers[worker].lock);
}

uint64_t thread_pool_helper_ns(const thread_pool *p)
{
    uint64_t sum = 0;
    for (int i = p->caller_count; i < p->caller_count + p->helper_count; i++)
        sum += atomic_load_explicit(&p->workers[i].joined_ns, memory_order_relaxed);
    return sum;
}
