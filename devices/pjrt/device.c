#include "devices/pjrt/device.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "devices/health.h"
#include "devices/pjrt/group.h"
#include "devices/pjrt/program.h"
#include "graph/encoder/packed.h"

#define ROOM "devices"

static bool is_same_program(const shared_program *p, const device_model *model,
                            device_bucket bucket)
{
    return p->graph == model->graph && p->packed_encoder == model->packed_encoder &&
           p->precision == model->precision && p->bucket.batch == bucket.batch &&
           p->bucket.sequence == bucket.sequence;
}

/* --- compiling --- */

static void release_shared(pjrt_group *g, shared_program *p)
{
    pthread_mutex_lock(&g->lock);
    bool is_last = --p->references == 0;
    if (is_last)
        for (shared_program **link = &g->programs; *link != NULL; link = &(*link)->next)
            if (*link == p) {
                *link = p->next;
                break;
            }
    pthread_mutex_unlock(&g->lock);
    if (!is_last)
        return;
    if (p->result == STATUS_OK)
        pjrt_group_unload(g, p);
    arena_dispose(&p->memory);
    free(p->weights);
    free(p);
}

static status reject_absent(const device *base)
{
    return status_fail(STATUS_UNAVAILABLE, "%s is not there yet", base->name);
}

static status pjrt_compile(device *base, const device_model *model, device_bucket bucket,
                           device_program **out)
{
    pjrt_group *g = ((pjrt_device *)base)->group;
    if (device_is_absent(base))
        return reject_absent(base);
    /* The caller executes next, so the host must be healthy even if the program exists. */
    status healthy = pjrt_supervisor_wait(g->supervisor, PJRT_HEALTHY_WAIT_NS);
    if (healthy)
        return healthy;
    pthread_mutex_lock(&g->lock);
    shared_program *p = g->programs;
    while (p != NULL && !is_same_program(p, model, bucket))
        p = p->next;
    bool is_first = p == NULL;
    if (is_first) {
        p = calloc(1, sizeof *p);
        assert(p != NULL);
        *p = (shared_program){.next = g->programs,
                              .graph = model->graph,
                              .packed_encoder = model->packed_encoder,
                              .input_count = model->graph->input_count +
                                             (model->packed_encoder ? ENCODER_PACKED_INPUTS : 0),
                              .precision = model->precision,
                              .bucket = bucket};
        g->programs = p;
    }
    p->references++;
    while (!is_first && !p->is_ready)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
    if (is_first) {
        status made = pjrt_group_load(g, model, p);
        pthread_mutex_lock(&g->lock);
        p->result = made;
        snprintf(p->error, sizeof p->error, "%s", made ? status_message() : "");
        p->is_ready = true;
        pthread_cond_broadcast(&g->changed);
        pthread_mutex_unlock(&g->lock);
    }
    if (p->result) {
        status failed = status_fail(p->result, "%s", p->error);
        release_shared(g, p);
        return failed;
    }
    pjrt_program_of_device *program = malloc(sizeof *program);
    assert(program != NULL);
    device_layout layout = model->packed_encoder ? DEVICE_PACKED : DEVICE_PADDED;
    device_origin origin = !is_first      ? DEVICE_SHARED
                           : p->is_cached ? DEVICE_FROM_CACHE
                                          : DEVICE_MADE;
    *program = (pjrt_program_of_device){{.layout = layout, .origin = origin, .bucket = bucket}, p};
    program->base.cost.operations = p->operations;
    *out = &program->base;
    return STATUS_OK;
}

static void pjrt_release(device *base, device_program *program)
{
    release_shared(((pjrt_device *)base)->group, ((pjrt_program_of_device *)program)->shared);
    free(program);
}

/* --- batches in flight --- */

static void set_depth(pjrt_device *d, int depth)
{
    if (depth == d->pipeline.depth)
        return;
    pjrt_pipeline_move(&d->pipeline, depth);
    atomic_store(&d->base.depth, depth);
    log_info(ROOM, "%s: %d batches in flight; it idled %.1f%% of its time with the pipeline full",
             d->name, depth, 100 * d->pipeline.idle_fraction);
}

/* The pipeline becomes as deep as it must be, and as the memory allows. */
static void deepen(pjrt_device *d)
{
    pjrt_group *g = d->group;
    pthread_mutex_lock(&g->lock);
    pthread_mutex_lock(&d->pipeline_lock);
    int wanted = d->pipeline.depth + 1;
    if (wanted <= d->pipeline.depth_max && pjrt_footprint_depth(&g->footprint, wanted) == wanted)
        set_depth(d, wanted);
    else
        pjrt_pipeline_refuse(&d->pipeline);
    pthread_mutex_unlock(&d->pipeline_lock);
    pthread_mutex_unlock(&g->lock);
}

void pjrt_group_fit_depth(pjrt_group *g)
{
    pthread_mutex_lock(&g->lock);
    for (int i = 0; i < g->device_count; i++) {
        pjrt_device *d = g->devices[i];
        pthread_mutex_lock(&d->pipeline_lock);
        set_depth(d, pjrt_footprint_depth(&g->footprint, d->pipeline.depth));
        pthread_mutex_unlock(&d->pipeline_lock);
    }
    pthread_mutex_unlock(&g->lock);
}

static void learn(pjrt_device *d, const pjrt_run_statistics *run, int slot, bool is_full)
{
    pthread_mutex_lock(&d->pipeline_lock);
    d->pinned_bytes[slot] = run->pinned_bytes;
    int wanted = d->pipeline.depth;
    if (run->times.submitted_ns != 0)
        wanted = pjrt_pipeline_observe(&d->pipeline, &run->times, is_full);
    if (wanted < d->pipeline.depth)
        set_depth(d, wanted);
    bool is_more = wanted > d->pipeline.depth;
    pthread_mutex_unlock(&d->pipeline_lock);
    if (is_more)
        deepen(d);
}

/* --- executing --- */

static status pjrt_execute(device *base, device_program *program, int slot,
                           const device_batch *batch)
{
    pjrt_device *d = (pjrt_device *)base;
    shared_program *p = ((pjrt_program_of_device *)program)->shared;
    status s = pjrt_ranges_check(p->ranges, p->range_count, batch->inputs);
    if (s)
        return s; /* the request is invalid; the device has not failed */
    uint64_t start_ns = clock_now_ns();
    pjrt_run_statistics run = {.longest_ns = &p->longest_ns};
    bool is_full = __builtin_popcountll(atomic_load(&base->slots_in_use)) >= device_depth(base);
    s = pjrt_supervisor_execute(d->group->supervisor, d->number, slot, p->number, &run,
                                batch->inputs, p->input_count, batch->outputs,
                                p->graph->output_count);
    atomic_fetch_add(&d->busy_ns, clock_now_ns() - start_ns);
    atomic_fetch_add(s ? &d->failures : &d->executions, 1);
    if (s == STATUS_OK)
        learn(d, &run, slot, is_full);
    return s;
}

static void describe_pipeline(pjrt_device *d, device_status *out)
{
    pthread_mutex_lock(&d->pipeline_lock);
    out->pipeline_depth = d->pipeline.depth;
    out->pipeline_idle_fraction = d->pipeline.idle_fraction;
    out->computing_ns = d->pipeline.computing_ns;
    out->transfer_ns = d->pipeline.transfer_ns;
    for (int i = 0; i < PJRT_SLOTS_MAX; i++)
        out->pinned_bytes += d->pinned_bytes[i];
    pthread_mutex_unlock(&d->pipeline_lock);
}

static void describe_memory(pjrt_group *g, device_status *out)
{
    pthread_mutex_lock(&g->lock);
    out->memory_bytes = g->footprint.memory_bytes;
    out->claimed_bytes = pjrt_footprint_bytes_at(&g->footprint, out->pipeline_depth);
    pthread_mutex_unlock(&g->lock);
}

static void pjrt_describe(device *base, device_status *out)
{
    pjrt_device *d = (pjrt_device *)base;
    if (device_is_absent(base)) {
        *out = (device_status){.state = DEVICE_STARTING, .detail = "not there yet", .version = ""};
        return;
    }
    *out = (device_status){.compiles = atomic_load(&d->group->compiles),
                           .cache_hits = atomic_load(&d->group->cache_hits),
                           .executions = atomic_load(&d->executions),
                           .failures = atomic_load(&d->failures),
                           .busy_ns = atomic_load(&d->busy_ns),
                           .version = d->group->version};
    if (d->group->cache != NULL) {
        compile_cache_counts c = compile_cache_count(d->group->cache);
        out->cache_misses = c.misses;
        out->cache_corrupt = c.corrupt;
        out->cache_refused = c.refused;
        out->cache_store_failures = c.store_failures;
    }
    describe_pipeline(d, out);
    describe_memory(d->group, out);
    pjrt_supervisor_describe(d->group->supervisor, out);
}

/* --- creation and end --- */

static void destroy_group(pjrt_group *g)
{
    assert(g->programs == NULL);
    if (g->weights != NULL)
        pjrt_weights_destroy(g->weights);
    pjrt_footprint_dispose(&g->footprint);
    pjrt_calibrations_destroy(g->calibrations);
    pjrt_supervisor_destroy(g->supervisor);
    compile_cache_close(g->cache);
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->changed);
    free(g);
}

static void pjrt_destroy(device *base)
{
    pjrt_device *d = (pjrt_device *)base;
    pjrt_group *g = d->group;
    pthread_mutex_destroy(&d->pipeline_lock);
    free(d);
    if (--g->references == 0) /* devices are destroyed by one thread */
        destroy_group(g);
}

static void pjrt_explain(device *base, const device_program *program, char *text, size_t bytes)
{
    (void)base;
    snprintf(text, bytes, "%s", ((const pjrt_program_of_device *)program)->shared->how);
}

static status pjrt_profile(device *base, uint64_t duration_ns)
{
    if (device_is_absent(base))
        return reject_absent(base);
    return pjrt_supervisor_profile(((pjrt_device *)base)->group->supervisor, duration_ns);
}

static status pjrt_take_profile(device *base, void **data, size_t *bytes)
{
    return pjrt_supervisor_take_profile(((pjrt_device *)base)->group->supervisor, data, bytes);
}

static const device_interface pjrt_interface = {
    .compile = pjrt_compile,
    .release = pjrt_release,
    .execute = pjrt_execute,
    .describe = pjrt_describe,
    .explain = pjrt_explain,
    .profile = pjrt_profile,
    .take_profile = pjrt_take_profile,
    .destroy = pjrt_destroy,
};

static pjrt_group *create_group(const device_pjrt_options *options)
{
    pjrt_group *g = calloc(1, sizeof *g);
    assert(g != NULL);
    g->options = *options;
    g->footprint.slots = options->slots ? options->slots : PJRT_SLOTS_MIN;
    g->calibrations = pjrt_calibrations_create();
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    return g;
}

static int64_t memory_of(const device_pjrt_options *o, const pjrt_host_facts *facts)
{
    return facts->memory_bytes > 0 ? facts->memory_bytes
           : o->memory_bytes > 0   ? o->memory_bytes
                                   : pjrt_footprint_memory_of(facts->device_kind);
}

/* Starts the host; after a failure the group is as it was. */
static status open_group(pjrt_group *g)
{
    const device_pjrt_options *o = &g->options;
    pjrt_supervisor_options supervisor = {.host_program = o->host_program,
                                          .plugin = o->plugin,
                                          .slots_per_device = o->slots,
                                          .slot_memory_bytes = o->slot_memory_bytes,
                                          .start_timeout_ns = o->start_timeout_ns,
                                          .hang_timeout_ns = o->hang_timeout_ns};
    status s = STATUS_OK;
    if (o->cache_folder != NULL && g->cache == NULL)
        s = compile_cache_open(o->cache_folder, &g->cache);
    if (s == STATUS_OK)
        s = pjrt_supervisor_create(&supervisor, &g->supervisor);
    if (s)
        return s;
    g->weights = pjrt_weights_create(g->supervisor);
    pjrt_supervisor_facts(g->supervisor, &g->facts);
    g->footprint.memory_bytes = memory_of(o, &g->facts);
    pjrt_program_cache_kind(g->facts.platform, g->facts.device_kind, g->cache_kind);
    snprintf(g->compiler, sizeof g->compiler, "%s%s%s", g->facts.version,
             g->facts.fingerprint[0] ? ", " : "", g->facts.fingerprint);
    snprintf(g->version, sizeof g->version, "%s on %s (%s), %d device%s", g->facts.version,
             g->facts.platform, g->facts.device_kind, g->facts.device_count,
             g->facts.device_count == 1 ? "" : "s");
    assert(g->facts.device_count <= DEVICE_PJRT_DEVICES_MAX);
    log_info(ROOM, "%s: %s", o->plugin, g->version);
    return STATUS_OK;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* `count` more of them; absent while the group is not open. */
static void add_devices(pjrt_group *g, int first_number, int count, device **out)
{
    bool is_open = g->supervisor != NULL;
    for (int i = 0; i < count; i++) {
        pjrt_device *d = calloc(1, sizeof *d);
        assert(d != NULL);
        snprintf(d->name, sizeof d->name, "pjrt:%d", first_number + i);
        d->base = (device){.interface = &pjrt_interface,
                           .name = d->name,
                           .kind = is_open ? g->facts.device_kind : file_name(g->options.plugin),
                           .peak_per_s = pjrt_footprint_peak_of(g->facts.device_kind),
                           .slots = pjrt_supervisor_slots(g->options.slots),
                           .is_absent = !is_open};
        pjrt_pipeline_init(&d->pipeline, g->footprint.slots, d->base.slots);
        d->base.depth = d->pipeline.depth;
        pthread_mutex_init(&d->pipeline_lock, NULL);
        d->group = g;
        d->number = i;
        g->references++;
        g->devices[g->device_count++] = d;
        out[i] = &d->base;
    }
}

status device_pjrt_create(const device_pjrt_options *options, int first_number,
                          device *out[DEVICE_PJRT_DEVICES_MAX], int *count)
{
    pjrt_group *g = create_group(options);
    status s = open_group(g);
    if (s) {
        destroy_group(g);
        return s;
    }
    add_devices(g, first_number, g->facts.device_count, out);
    *count = g->facts.device_count;
    return STATUS_OK;
}

void device_pjrt_reserve(const device_pjrt_options *options, int first_number, int count,
                         device **out)
{
    assert(count > 0 && count <= DEVICE_PJRT_DEVICES_MAX);
    add_devices(create_group(options), first_number, count, out);
}

status device_pjrt_open(device *reserved, int *count)
{
    assert(reserved->interface == &pjrt_interface && device_is_absent(reserved));
    pjrt_group *g = ((pjrt_device *)reserved)->group;
    status s = open_group(g);
    if (s)
        return s;
    int usable = g->facts.device_count < g->device_count ? g->facts.device_count : g->device_count;
    if (usable < g->facts.device_count)
        log_warning(ROOM, "%s: %d of its %d devices are used; a restart of the server uses all",
                    g->options.plugin, usable, g->facts.device_count);
    for (int i = 0; i < usable; i++) {
        g->devices[i]->base.kind = g->facts.device_kind;
        g->devices[i]->base.peak_per_s = pjrt_footprint_peak_of(g->facts.device_kind);
        atomic_store_explicit(&g->devices[i]->base.is_absent, false, memory_order_release);
    }
    device_health_changed();
    *count = usable;
    return STATUS_OK;
}

const char *device_pjrt_version(const device *d)
{
    assert(d->interface == &pjrt_interface);
    return ((const pjrt_device *)d)->group->version;
}
