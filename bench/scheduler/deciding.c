#include "bench/scheduler/deciding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/sim/sim.h"

#define WAITING 10000 /* jobs */
#define ROUNDS 20000  /* batches */

typedef struct deciding {
    model m;
    dispatch queues;
    model_queue *queue; /* of `m` */
    sim_trace trace;
    job *free_jobs;
    int64_t waiting, requests;
    uint64_t now_ns, spent_ns, clock_cost_ns;
    cost_attribution attribution; /* of the last batch */
} deciding;

static void make_model(model *m)
{
    static device d = {.name = "simulated", .kind = "simulated", .slots = 1};
    static device *devices[] = {&d};
    static device_program p;
    static device_program *programs[] = {&p};
    sim_model kind = {.fixed_ns = 300000, .token_ns = 5000, .square_ns = 4};
    *m = (model){.name = "m", .devices = devices, .device_count = 1};
    m->batching = (model_batching){.can_batch = true, .can_pad = true, .sequence_max = 256};
    m->latency = latency_create(devices, 1);
    memcpy(m->batch_buckets, sim_batches, SIM_BATCHES * sizeof *sim_batches);
    memcpy(m->sequence_buckets, sim_sequences, SIM_SEQUENCES * sizeof *sim_sequences);
    m->batch_bucket_count = SIM_BATCHES;
    m->sequence_bucket_count = SIM_SEQUENCES;
    for (int s = 0; s < SIM_SEQUENCES; s++)
        for (int b = 0; b < SIM_BATCHES; b++) {
            model_bucket *to = &m->buckets[m->bucket_count++];
            to->shape = (device_bucket){sim_batches[b], sim_sequences[s]};
            to->programs = programs;
            latency_observe(m->latency, 0, m->bucket_count - 1, (latency_work){1, 1, 1},
                            (uint64_t)sim_time_ns(&kind, sim_batches[b], sim_sequences[s], NULL),
                            1);
        }
}

/* Reading the processor's time is a system call: its cost is subtracted. */
static uint64_t measure_clock(void)
{
    uint64_t begun_ns = clock_thread_cpu_ns();
    for (int i = 0; i < 9999; i++)
        clock_thread_cpu_ns();
    return (clock_thread_cpu_ns() - begun_ns) / 10000;
}

static void release(deciding *d, job *j)
{
    j->next = d->free_jobs;
    d->free_jobs = j;
}

/* Queues jobs until WAITING wait; `is_timed`: counts the time that takes. */
static void fill(deciding *d, bool is_timed)
{
    sim_request r;
    while (d->waiting < WAITING && d->free_jobs != NULL && sim_trace_next(&d->trace, &r)) {
        job *j = d->free_jobs;
        d->free_jobs = j->next;
        j->model = &d->m;
        j->rows = 1;
        j->length = r.length;
        j->deadline_ns = d->now_ns + 3000000000 + (uint64_t)r.length * 1000000;
        j->stage_ns[STAGE_ADMIT] = d->now_ns;
        uint64_t begun_ns = clock_thread_cpu_ns();
        if (!dispatch_push(&d->queues, d->queue, j))
            abort();
        d->spent_ns += is_timed ? clock_thread_cpu_ns() - begun_ns - d->clock_cost_ns : 0;
        d->waiting++;
    }
}

static void take_batch(deciding *d)
{
    static const bool is_healthy[] = {true};
    batch_member members[MODEL_AXIS_MAX];
    placement_devices one = {.count = 1, .cpu = -1, .is_healthy = is_healthy};
    dispatch_batch b = {
        .members = members, .capacity = MODEL_AXIS_MAX, .attribution = &d->attribution};
    dispatch_request ask = {.now_ns = d->now_ns, .workers = 1, .devices = &one};
    uint64_t begun_ns = clock_thread_cpu_ns();
    dispatch_settle(&d->queues, &d->attribution, 1000000);
    dispatch_next(&d->queues, &ask, &b);
    d->spent_ns += clock_thread_cpu_ns() - begun_ns;
    for (int k = 0; k < b.count; k++)
        release(d, members[k].job);
    for (job *j = b.overdue, *next; j != NULL; j = next, d->waiting--) {
        next = j->next;
        release(d, j);
    }
    d->waiting -= b.count;
    d->requests += b.count;
    d->now_ns += b.expected_ns / 8;
}

void measure_deciding(void)
{
    static deciding d = {.now_ns = 1};
    sim_config c;
    make_model(&d.m);
    dispatch_init(&d.queues, 1, 1, NULL);
    d.queue = dispatch_queue(&d.queues, &d.m);
    sim_default(&c);
    c.requests = WAITING + ROUNDS * 40;
    sim_trace_init(&d.trace, &c);
    d.clock_cost_ns = measure_clock();
    for (int i = 0; i < WAITING + 64; i++)
        release(&d, calloc(1, sizeof(job)));
    for (int i = 0; i < ROUNDS; i++) {
        fill(&d, i > 0);
        take_batch(&d);
    }
    printf("deciding: %.2f us per request with %d waiting (%.1f per batch; "
           "queueing included)\n",
           (double)d.spent_ns / 1e3 / (double)d.requests, WAITING, (double)d.requests / ROUNDS);
}
