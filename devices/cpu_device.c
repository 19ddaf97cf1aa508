#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "devices/cpu_evaluate.h"
#include "devices/cpu_plan.h"
#include "devices/device.h"

/* The CPU as a device: a program is a plan at one bucket; a lane is a workspace. */

#define LANES_MAX 1024

typedef struct cpu_lane {
    /* Held while the lane executes, which is never contended by other lanes; only a compile that
     * finds the workspace too small waits for it. */
    pthread_mutex_t lock;
    void *workspace;
    size_t workspace_bytes;
} __attribute__((aligned(64))) cpu_lane;

/* Packed weights of a model, for as long as one program of it lives. */
typedef struct cpu_model {
    struct cpu_model *next;
    const graph *graph;
    cpu_weights *weights;
    int programs;
} cpu_model;

typedef struct cpu_device {
    device base;
    const kernels *kernels;
    pthread_mutex_t lock; /* of `models` */
    cpu_model *models;
    cpu_lane *lanes;
    _Atomic uint64_t compiles, executions, failures, busy_ns;
} cpu_device;

typedef struct cpu_program {
    device_program base;
    graph *specialised;
    cpu_plan *plan;
    cpu_model *model;
} cpu_program;

static cpu_model *take_model(cpu_device *d, const graph *g)
{
    pthread_mutex_lock(&d->lock);
    cpu_model *m = d->models;
    while (m && m->graph != g)
        m = m->next;
    if (!m && (m = calloc(1, sizeof *m))) {
        m->graph = g;
        m->weights = cpu_weights_create(g);
        if (m->weights) {
            m->next = d->models;
            d->models = m;
        } else {
            free(m);
            m = NULL;
        }
    }
    if (m)
        m->programs++;
    pthread_mutex_unlock(&d->lock);
    return m;
}

static void give_model(cpu_device *d, cpu_model *m)
{
    pthread_mutex_lock(&d->lock);
    if (--m->programs == 0) {
        cpu_model **at = &d->models;
        while (*at != m)
            at = &(*at)->next;
        *at = m->next;
        cpu_weights_release(m->weights);
        free(m);
    }
    pthread_mutex_unlock(&d->lock);
}

/* Makes every lane's workspace at least so large, and touches it, so that no execution allocates
 * or faults pages in. */
static status grow_lanes(cpu_device *d, size_t bytes)
{
    status s = STATUS_OK;
    for (int i = 0; !s && i < d->base.lanes; i++) {
        cpu_lane *lane = &d->lanes[i];
        pthread_mutex_lock(&lane->lock);
        if (lane->workspace_bytes < bytes) {
            void *larger = aligned_alloc(CPU_PLAN_WORKSPACE_ALIGNMENT, bytes);
            if (larger) {
                memset(larger, 0, bytes);
                free(lane->workspace);
                lane->workspace = larger;
                lane->workspace_bytes = bytes;
            } else {
                s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for a workspace of %zu bytes",
                                bytes);
            }
        }
        pthread_mutex_unlock(&lane->lock);
    }
    return s;
}

static void cpu_release(device *base, device_program *program)
{
    cpu_program *p = (cpu_program *)program;
    if (!p)
        return;
    cpu_plan_destroy(p->plan);
    graph_destroy(p->specialised);
    if (p->model)
        give_model((cpu_device *)base, p->model);
    free(p);
}

static status cpu_compile(device *base, const device_model *model, device_bucket bucket,
                          device_program **out)
{
    cpu_device *d = (cpu_device *)base;
    const graph *g = model->graph;
    tensor *inputs = calloc((size_t)g->input_count + 1, sizeof *inputs);
    cpu_program *p = calloc(1, sizeof *p);
    status s;
    if (!inputs || !p || !(p->model = take_model(d, g))) {
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for a program");
        goto fail;
    }
    p->base = (device_program){.layout = DEVICE_PADDED, .bucket = bucket};
    s = graph_bind(g, bucket.batch, bucket.sequence, inputs);
    if (s)
        goto fail;
    s = graph_specialise(g, &(graph_binding){.inputs = inputs}, cpu_evaluate_node, &p->specialised);
    if (s)
        goto fail;
    s = cpu_plan_create(p->specialised, d->kernels, p->model->weights, &p->plan);
    if (s)
        goto fail;
    s = grow_lanes(d, cpu_plan_workspace_bytes(p->plan));
    if (s)
        goto fail;
    atomic_fetch_add_explicit(&d->compiles, 1, memory_order_relaxed);
    free(inputs);
    *out = &p->base;
    return STATUS_OK;
fail:
    free(inputs);
    cpu_release(base, &p->base);
    return s;
}

static status cpu_execute(device *base, device_program *program, int lane_index,
                          const device_batch *batch)
{
    cpu_device *d = (cpu_device *)base;
    const cpu_program *p = (const cpu_program *)program;
    assert(lane_index >= 0 && lane_index < base->lanes);
    cpu_lane *lane = &d->lanes[lane_index];
    uint64_t start_ns = clock_now_ns();
    kernels_prepare_thread();
    pthread_mutex_lock(&lane->lock);
    assert(lane->workspace_bytes >= cpu_plan_workspace_bytes(p->plan));
    status s = cpu_plan_run(p->plan, batch->inputs, batch->outputs, lane->workspace);
    pthread_mutex_unlock(&lane->lock);
    atomic_fetch_add_explicit(&d->executions, 1, memory_order_relaxed);
    if (s)
        atomic_fetch_add_explicit(&d->failures, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&d->busy_ns, clock_now_ns() - start_ns, memory_order_relaxed);
    return s;
}

static void cpu_describe(device *base, device_status *out)
{
    cpu_device *d = (cpu_device *)base;
    *out = (device_status){
        .state = DEVICE_HEALTHY,
        .compiles = atomic_load_explicit(&d->compiles, memory_order_relaxed),
        .executions = atomic_load_explicit(&d->executions, memory_order_relaxed),
        .failures = atomic_load_explicit(&d->failures, memory_order_relaxed),
        .busy_ns = atomic_load_explicit(&d->busy_ns, memory_order_relaxed),
    };
    snprintf(out->detail, sizeof out->detail, "%d lanes, kernels up to %s", base->lanes,
             kernels_level_name(d->kernels->level));
}

static void cpu_destroy(device *base)
{
    cpu_device *d = (cpu_device *)base;
    assert(!d->models); /* programs are released before their device */
    for (int i = 0; i < base->lanes; i++) {
        pthread_mutex_destroy(&d->lanes[i].lock);
        free(d->lanes[i].workspace);
    }
    pthread_mutex_destroy(&d->lock);
    free(d->lanes);
    free(d);
}

static const device_interface cpu_interface = {
    .compile = cpu_compile,
    .release = cpu_release,
    .execute = cpu_execute,
    .describe = cpu_describe,
    .destroy = cpu_destroy,
};

static int core_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    return CPU_COUNT(&set);
}

status device_cpu_create(int threads, const char *level, device **out)
{
    if (threads < 0 || threads > LANES_MAX)
        return status_fail(STATUS_INVALID_ARGUMENT, "%d CPU threads; the limit is %d", threads,
                           LANES_MAX);
    const kernels *table;
    status s = kernels_select(level, &table);
    if (s)
        return s;
    cpu_device *d = calloc(1, sizeof *d);
    int lanes = threads ? threads : core_count();
    if (d)
        d->lanes = aligned_alloc(64, (size_t)lanes * sizeof d->lanes[0]);
    if (!d || !d->lanes) {
        free(d);
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %d lanes", lanes);
    }
    memset(d->lanes, 0, (size_t)lanes * sizeof d->lanes[0]);
    d->base = (device){.interface = &cpu_interface, .name = "cpu", .kind = "cpu", .lanes = lanes};
    d->kernels = table;
    pthread_mutex_init(&d->lock, NULL);
    for (int i = 0; i < lanes; i++)
        pthread_mutex_init(&d->lanes[i].lock, NULL);
    *out = &d->base;
    return STATUS_OK;
}
