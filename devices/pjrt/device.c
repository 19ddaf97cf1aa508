#include "devices/pjrt/device.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "devices/compile_cache.h"
#include "devices/exported.h"
#include "devices/pjrt/program.h"
#include "devices/pjrt/ranges.h"
#include "devices/pjrt/supervisor/supervisor.h"
#include "devices/pjrt/weights.h"
#include "graph/encoder/packed.h"
#include "graph/stablehlo/emit.h"

#define ROOM "devices"

/* Tries of a compilation whose host ends meanwhile, and how long each waits for a healthy host. */
#define TRIES_MAX 3
#define HEALTHY_WAIT_NS UINT64_C(60000000000)

/* A program is loaded once for all devices of a host; each device's device_program refers to it. */
typedef struct shared_program {
    struct shared_program *next;
    const graph *graph;
    const struct encoder *packed_encoder; /* or NULL */
    device_precision precision;
    device_bucket bucket;
    int input_count; /* of the program, with those of a packed bucket */
    int references;
    bool is_ready; /* false while its first user compiles it */
    status result;
    char error[STATUS_MESSAGE_BYTES_MAX];
    uint32_t number;
    uint32_t *weights;
    int weight_count;
    pjrt_range *ranges; /* in `memory` */
    int range_count;
    arena memory;
    _Atomic uint64_t longest_ns; /* of its executions */
} shared_program;

typedef struct pjrt_program_of_device {
    device_program base;
    shared_program *shared;
} pjrt_program_of_device;

/* The devices of one host, and what they share. */
typedef struct pjrt_group {
    pjrt_supervisor *supervisor;
    compile_cache *cache; /* NULL: none */
    bool is_cache_only;
    char version[400];
    char cache_kind[160]; /* device kind as cache keys have it */
    pjrt_host_facts facts;
    int references; /* devices alive */

    pthread_mutex_t lock; /* guards the lists; never held while the host works */
    pthread_cond_t changed;
    shared_program *programs;
    pjrt_weights *weights;
    _Atomic uint64_t compiles, cache_hits;
} pjrt_group;

typedef struct pjrt_device {
    device base;
    pjrt_group *group;
    int number; /* within the host */
    char name[32];
    _Atomic uint64_t executions, failures, busy_ns;
} pjrt_device;

static bool is_same_program(const shared_program *p, const device_model *model,
                            device_bucket bucket)
{
    return p->graph == model->graph && p->packed_encoder == model->packed_encoder &&
           p->precision == model->precision && p->bucket.batch == bucket.batch &&
           p->bucket.sequence == bucket.sequence;
}

/* --- compiling --- */

static status compile_now(pjrt_group *g, const device_model *model, device_bucket bucket,
                          const stablehlo_program *program, const compile_cache_key *key, int *fd,
                          size_t *bytes)
{
    if (model->serving_compiles != NULL) {
        atomic_fetch_add(model->serving_compiles, 1);
        log_error(ROOM, "%s: compiling %lldx%lld although the model is ready", model->name,
                  (long long)bucket.batch, (long long)bucket.sequence);
    }
    uint64_t compile_ns = 0;
    pjrt_declaration declared = {0};
    if (model->exported != NULL)
        pjrt_declaration_make(model, bucket, program, &declared);
    status s =
        pjrt_supervisor_compile(g->supervisor, program->text, program->bytes,
                                model->exported != NULL ? &declared : NULL, fd, bytes, &compile_ns);
    pjrt_declaration_dispose(&declared);
    if (s)
        return model->exported == NULL
                   ? s
                   : status_prefix(s, "%s", device_exported_find(model->exported, bucket)->name);
    atomic_fetch_add(&g->compiles, 1);
    if (g->cache == NULL)
        return STATUS_OK;
    void *data = NULL;
    s = pjrt_memory_map(*fd, *bytes, false, &data);
    if (s == STATUS_OK) {
        char summary[PJRT_SUMMARY_BYTES];
        int summary_bytes = pjrt_program_summary(summary, model, bucket, program, g->cache_kind,
                                                 g->facts.version, (double)compile_ns * 1e-9);
        compile_cache_entry entry = {data, *bytes, summary, (size_t)summary_bytes};
        if (compile_cache_put(g->cache, key, &entry))
            log_warning(ROOM, "%s", status_message());
        pjrt_memory_unmap(data, *bytes);
    }
    return STATUS_OK;
}

/* The serialised program: from the cache, or compiled now and stored there. The caller closes the
 * memfd. `*is_cached`: in, whether the cache may be used; out, whether the program came from it. */
static status obtain(pjrt_group *g, const device_model *model, device_bucket bucket,
                     const stablehlo_program *program, bool *is_cached, int *fd, size_t *bytes)
{
    compile_cache_key key =
        pjrt_program_key(model, bucket, program, g->cache_kind, g->facts.version);
    compile_cache_entry entry;
    if (*is_cached && g->cache != NULL && compile_cache_get(g->cache, &key, &entry) == STATUS_OK) {
        status s =
            pjrt_memory_create_from("penstock-program", entry.program, entry.program_bytes, fd);
        *bytes = entry.program_bytes;
        compile_cache_entry_dispose(&entry);
        atomic_fetch_add(&g->cache_hits, 1);
        return s;
    }
    *is_cached = false;
    char name[80];
    compile_cache_file_name(&key, name);
    if (g->is_cache_only)
        return status_fail(STATUS_NOT_FOUND,
                           "%s at %lldx%lld: %s is not in the compile cache, and --cache-only "
                           "forbids compiling",
                           model->name, (long long)bucket.batch, (long long)bucket.sequence, name);
    return compile_now(g, model, bucket, program, &key, fd, bytes);
}

static status load_program(pjrt_group *g, const device_model *model,
                           const stablehlo_program *program, int fd, size_t bytes,
                           shared_program *p)
{
    pjrt_argument *arguments = calloc((size_t)program->argument_count + 1, sizeof *arguments);
    p->weights = calloc((size_t)program->argument_count + 1, sizeof *p->weights);
    assert(arguments != NULL && p->weights != NULL);
    status s = STATUS_OK;
    for (int i = 0; s == STATUS_OK && i < program->argument_count; i++) {
        const stablehlo_argument *a = &program->arguments[i];
        arguments[i] = (pjrt_argument){.is_weight = a->input < 0, .index = (uint32_t)a->input};
        if (a->input >= 0)
            continue;
        s = pjrt_weights_obtain(g->weights, model->graph, a, &arguments[i].index);
        if (s == STATUS_OK)
            p->weights[p->weight_count++] = arguments[i].index;
    }
    if (s == STATUS_OK)
        s = pjrt_supervisor_add_program(g->supervisor, fd, bytes, arguments,
                                        program->argument_count, program->output_count, &p->number);
    free(arguments);
    for (; s != STATUS_OK && p->weight_count > 0; p->weight_count--)
        pjrt_weights_release(g->weights, model->graph, p->weights[p->weight_count - 1]);
    return s;
}

/* Has the host ended since it had restarted `restarts` times? */
static bool has_host_ended(pjrt_group *g, uint64_t restarts)
{
    device_status now = {0};
    pjrt_supervisor_describe(g->supervisor, &now);
    return now.state != DEVICE_HEALTHY || now.restarts != restarts;
}

static status make_loaded(pjrt_group *g, const device_model *model,
                          const stablehlo_program *program, shared_program *p)
{
    status s = STATUS_OK;
    bool may_be_cached = true;
    for (int i = 0; i < TRIES_MAX; i++) {
        s = pjrt_supervisor_wait(g->supervisor, HEALTHY_WAIT_NS);
        if (s)
            return s;
        device_status before = {0};
        pjrt_supervisor_describe(g->supervisor, &before);
        bool is_cached = may_be_cached;
        int fd = -1;
        size_t bytes = 0;
        s = obtain(g, model, p->bucket, program, &is_cached, &fd, &bytes);
        if (s == STATUS_OK)
            s = load_program(g, model, program, fd, bytes, p);
        if (fd >= 0)
            close(fd);
        if (s == STATUS_OK || g->is_cache_only)
            return s;
        if (is_cached) { /* its checksum is right, but the plugin cannot load it */
            log_warning(ROOM,
                        "%s: the plugin cannot load a program from the compile cache: %s; "
                        "compiling it again",
                        model->name, status_message());
            compile_cache_distrust(g->cache);
            may_be_cached = false;
        } else if (!has_host_ended(g, before.restarts)) {
            return s;
        }
    }
    return s;
}

static status make_program(pjrt_group *g, const device_model *model, shared_program *p)
{
    graph *specialised = NULL;
    stablehlo_program program;
    status s = pjrt_program_emit(model, p->bucket, &specialised, &program);
    if (s)
        return s;
    if (specialised != NULL)
        p->range_count = pjrt_ranges_find(specialised, &p->memory, &p->ranges);
    s = make_loaded(g, model, &program, p);
    stablehlo_program_dispose(&program);
    graph_destroy(specialised);
    return s;
}

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
    if (p->result == STATUS_OK) {
        pjrt_supervisor_remove_program(g->supervisor, p->number);
        for (int i = 0; i < p->weight_count; i++)
            pjrt_weights_release(g->weights, p->graph, p->weights[i]);
    }
    arena_dispose(&p->memory);
    free(p->weights);
    free(p);
}

static status pjrt_compile(device *base, const device_model *model, device_bucket bucket,
                           device_program **out)
{
    pjrt_group *g = ((pjrt_device *)base)->group;
    /* The caller executes next, so the host must be healthy even if the program exists. */
    status healthy = pjrt_supervisor_wait(g->supervisor, HEALTHY_WAIT_NS);
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
        status made = make_program(g, model, p);
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
    *program = (pjrt_program_of_device){{.layout = layout, .bucket = bucket}, p};
    *out = &program->base;
    return STATUS_OK;
}

static void pjrt_release(device *base, device_program *program)
{
    release_shared(((pjrt_device *)base)->group, ((pjrt_program_of_device *)program)->shared);
    free(program);
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
    s = pjrt_supervisor_execute(d->group->supervisor, d->number, slot, p->number, &p->longest_ns,
                                batch->inputs, p->input_count, batch->outputs,
                                p->graph->output_count);
    atomic_fetch_add(&d->busy_ns, clock_now_ns() - start_ns);
    atomic_fetch_add(s ? &d->failures : &d->executions, 1);
    return s;
}

static void pjrt_describe(device *base, device_status *out)
{
    pjrt_device *d = (pjrt_device *)base;
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
        out->cache_store_failures = c.store_failures;
    }
    pjrt_supervisor_describe(d->group->supervisor, out);
}

/* --- creation and end --- */

static void destroy_group(pjrt_group *g)
{
    assert(g->programs == NULL);
    if (g->weights != NULL)
        pjrt_weights_destroy(g->weights);
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
    free(d);
    if (--g->references == 0) /* devices are destroyed by one thread */
        destroy_group(g);
}

static const device_interface pjrt_interface = {
    .compile = pjrt_compile,
    .release = pjrt_release,
    .execute = pjrt_execute,
    .describe = pjrt_describe,
    .destroy = pjrt_destroy,
};

status device_pjrt_create(const device_pjrt_options *options, int first_number,
                          device *out[DEVICE_PJRT_DEVICES_MAX], int *count)
{
    pjrt_group *g = calloc(1, sizeof *g);
    assert(g != NULL);
    g->is_cache_only = options->is_cache_only;
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    status s = STATUS_OK;
    if (options->cache_folder != NULL)
        s = compile_cache_open(options->cache_folder, &g->cache);
    pjrt_supervisor_options supervisor = {.host_program = options->host_program,
                                          .plugin = options->plugin,
                                          .slots_per_device = options->slots,
                                          .slot_memory_bytes = options->slot_memory_bytes,
                                          .start_timeout_ns = options->start_timeout_ns,
                                          .hang_timeout_ns = options->hang_timeout_ns};
    if (s == STATUS_OK)
        s = pjrt_supervisor_create(&supervisor, &g->supervisor);
    if (s) {
        destroy_group(g);
        return s;
    }
    g->weights = pjrt_weights_create(g->supervisor);
    pjrt_supervisor_facts(g->supervisor, &g->facts);
    pjrt_program_cache_kind(g->facts.platform, g->facts.device_kind, g->cache_kind);
    snprintf(g->version, sizeof g->version, "%s on %s (%s), %d device%s", g->facts.version,
             g->facts.platform, g->facts.device_kind, g->facts.device_count,
             g->facts.device_count == 1 ? "" : "s");
    assert(g->facts.device_count <= DEVICE_PJRT_DEVICES_MAX);
    for (int i = 0; i < g->facts.device_count; i++) {
        pjrt_device *d = calloc(1, sizeof *d);
        assert(d != NULL);
        snprintf(d->name, sizeof d->name, "pjrt:%d", first_number + i);
        d->base = (device){.interface = &pjrt_interface,
                           .name = d->name,
                           .kind = g->facts.device_kind,
                           .slots = pjrt_supervisor_slots(g->supervisor)};
        d->group = g;
        d->number = i;
        g->references++;
        out[i] = &d->base;
    }
    *count = g->facts.device_count;
    log_info(ROOM, "%s: %s", options->plugin, g->version);
    return STATUS_OK;
}

const char *device_pjrt_version(const device *d)
{
    assert(d->interface == &pjrt_interface);
    return ((const pjrt_device *)d)->group->version;
}

void device_pjrt_count_cache(const device *d, device_pjrt_cache_counts *out)
{
    assert(d->interface == &pjrt_interface);
    const pjrt_group *g = ((const pjrt_device *)d)->group;
    *out = (device_pjrt_cache_counts){0};
    if (g->cache == NULL)
        return;
    compile_cache_counts c = compile_cache_count(g->cache);
    *out = (device_pjrt_cache_counts){c.hits, c.misses, c.corrupt, c.stored, c.store_failures};
}
