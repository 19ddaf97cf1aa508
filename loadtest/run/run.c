#include "loadtest/run/run.h"

#include "base/clock.h"
#include "loadtest/run/live.h"
#include "loadtest/wire/memory.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WATCH_US 50000
#define START_DELAY_NS 5000000u

typedef struct run_shared {
    pthread_barrier_t prepared, started;
    uint64_t start_ns; /* set between the two barriers */
    bool give_up, realtime;
    _Atomic int stop;
} run_shared;

typedef struct runner {
    pthread_t thread;
    worker *worker;
    run_shared *shared;
    status status;
    char message[STATUS_MESSAGE_BYTES_MAX];
    _Atomic int over;
} runner;

static void *run_thread(void *argument)
{
    runner *r = argument;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    if (r->shared->realtime && sched_setscheduler(0, SCHED_RR, &(struct sched_param){1}) != 0)
        fputs("penstock-load: --realtime needs CAP_SYS_NICE; going on without\n", stderr);
    r->status = worker_prepare(r->worker);
    if (r->status)
        snprintf(r->message, sizeof r->message, "%s", status_message());
    pthread_barrier_wait(&r->shared->prepared);
    pthread_barrier_wait(&r->shared->started);
    if (!r->shared->give_up)
        worker_run(r->worker, r->shared->start_ns, &r->shared->stop);
    r->over = 1;
    return NULL;
}

/* A worker's share of a number divided as evenly as possible. */
static unsigned share(unsigned whole, unsigned index, unsigned count)
{
    return whole / count + (index < whole % count);
}

static worker *make_worker(const run_plan *plan, unsigned index)
{
    worker_plan p = plan->worker;
    p.index = index;
    p.count = plan->threads;
    p.concurrency = share(p.concurrency, index, p.count);
    p.connections = share(p.connections, index, p.count);
    p.connections_max = share(p.connections_max, index, p.count);
    if (p.connections_max == 0)
        p.connections_max = 1;
    if (p.connections > p.connections_max)
        p.connections = p.connections_max;
    return worker_create(&p);
}

/* Whether so many requests are late already that the SLO cannot be met any more. An open loop knows
 * beforehand how many requests the window has. */
static bool slo_lost(const run_plan *plan, const runner *runners)
{
    if (plan->worker.arrivals == NULL)
        return false;
    double whole = (double)arrival_count(plan->worker.arrivals);
    for (size_t k = 0; k < plan->slo_count; k++) {
        const result_slo *slo = &plan->slo[k];
        double late = 0, allowed;
        for (unsigned i = 0; i < plan->threads; i++) {
            const result *r = worker_result(runners[i].worker);
            if (slo->kind == SLO_ERRORS) {
                late += (double)result_failed(r);
            } else {
                /* From the next cell on: the limit's own cell may hold values under it. */
                uint64_t count = r->latency.count;
                uint64_t in_time = histogram_count_at_most(&r->latency, (uint64_t)slo->limit);
                late += count > in_time ? (double)(count - in_time) : 0;
            }
        }
        allowed = slo->kind == SLO_ERRORS ? slo->limit * whole : (1 - slo->quantile) * whole;
        if (late > allowed + 2)
            return true;
    }
    return false;
}

static bool stop_is_asked(const run_plan *plan)
{
    return plan->stop != NULL && *plan->stop != 0;
}

/* Watches the threads until the last one is done. */
static void watch(const run_plan *plan, runner *runners, run_shared *shared, bool *aborted)
{
    worker **workers = memory_allocate(plan->threads, sizeof *workers);
    for (unsigned i = 0; i < plan->threads; i++)
        workers[i] = runners[i].worker;
    static live view;
    live_begin(&view, plan->live == 1, plan->label, shared->start_ns, plan->worker.warm_up_ns,
               plan->worker.duration_ns);
    uint64_t next_ns = shared->start_ns + 1000000000u;
    for (;;) {
        bool over = true;
        for (unsigned i = 0; i < plan->threads; i++)
            over &= runners[i].over;
        if (over)
            break;
        usleep(WATCH_US);
        uint64_t now_ns = clock_now_ns();
        if (plan->live >= 0 && now_ns >= next_ns) {
            live_tick(&view, workers, plan->threads, now_ns);
            next_ns += 1000000000u;
        }
        if (plan->stop_when_lost && slo_lost(plan, runners)) {
            *aborted = true;
            shared->stop = 1;
        }
        if (stop_is_asked(plan))
            shared->stop = 1;
    }
    live_end(&view);
    free(workers);
}

/* Stolen and total ticks of all processors; 0 where /proc has none. */
static void processor_ticks(double *stolen, double *total)
{
    *stolen = *total = 0;
    FILE *f = fopen("/proc/stat", "r");
    if (f == NULL)
        return;
    double t[8];
    if (fscanf(f, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", t, t + 1, t + 2, t + 3, t + 4, t + 5,
               t + 6, t + 7) == 8) {
        *stolen = t[7];
        for (int i = 0; i < 8; i++)
            *total += t[i];
    }
    fclose(f);
}

static status collect(const run_plan *plan, runner *runners, result *out)
{
    result_init(out, plan->worker.duration_ns);
    out->setup = plan->setup;
    const char *protocol = NULL;
    for (unsigned i = 0; i < plan->threads; i++) {
        result_merge(out, worker_result(runners[i].worker));
        if (worker_protocol(runners[i].worker) != NULL)
            protocol = worker_protocol(runners[i].worker);
    }
    snprintf(out->setup.protocol, sizeof out->setup.protocol, "%s%s", protocol ? protocol : "none",
             protocol && plan->worker.target->tls ? ", TLS" : "");
    return STATUS_OK;
}

/* Rates of a run that was stopped are of the time that it lasted. */
static void cut_short(result *out, uint64_t end_ns, uint64_t window_start_ns)
{
    uint64_t lasted_ns = end_ns > window_start_ns ? end_ns - window_start_ns : 0;
    if (lasted_ns < 1000000)
        lasted_ns = 1000000;
    if (lasted_ns >= out->setup.duration_ns)
        return;
    out->setup.duration_ns = lasted_ns;
    unsigned slices = (unsigned)((lasted_ns + out->slice_ns - 1) / out->slice_ns);
    if (slices < out->slice_count)
        out->slice_count = slices;
}

status run_execute(const run_plan *plan, result *out)
{
    assert(plan->threads > 0);
    run_shared shared = {.realtime = plan->realtime};
    runner *runners = memory_allocate(plan->threads, sizeof *runners);
    pthread_barrier_init(&shared.prepared, NULL, plan->threads + 1);
    pthread_barrier_init(&shared.started, NULL, plan->threads + 1);
    status s = STATUS_OK;
    for (unsigned i = 0; i < plan->threads; i++) {
        runners[i].worker = make_worker(plan, i);
        runners[i].shared = &shared;
        int error = pthread_create(&runners[i].thread, NULL, run_thread, &runners[i]);
        assert(error == 0); /* few threads, created before anything else */
        (void)error;
    }
    pthread_barrier_wait(&shared.prepared);
    for (unsigned i = 0; i < plan->threads && !s; i++)
        if (runners[i].status)
            s = status_fail(runners[i].status, "%s", runners[i].message);
    shared.give_up = s != STATUS_OK;
    shared.start_ns = clock_now_ns() + START_DELAY_NS;
    pthread_barrier_wait(&shared.started);
    bool aborted = false;
    double stolen, total, stolen_after, total_after;
    processor_ticks(&stolen, &total);
    if (!shared.give_up)
        watch(plan, runners, &shared, &aborted);
    processor_ticks(&stolen_after, &total_after);
    uint64_t end_ns = clock_now_ns();
    for (unsigned i = 0; i < plan->threads; i++)
        pthread_join(runners[i].thread, NULL);
    if (!s)
        s = collect(plan, runners, out);
    out->aborted = aborted || stop_is_asked(plan);
    if (!s && shared.stop)
        cut_short(out, end_ns, shared.start_ns + plan->worker.warm_up_ns);
    out->steal_share = total_after > total ? (stolen_after - stolen) / (total_after - total) : 0;
    for (unsigned i = 0; i < plan->threads; i++)
        worker_destroy(runners[i].worker);
    free(runners);
    pthread_barrier_destroy(&shared.prepared);
    pthread_barrier_destroy(&shared.started);
    return s;
}
