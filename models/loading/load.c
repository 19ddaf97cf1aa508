#include "models/loading/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "devices/cpu/evaluate.h"
#include "graph/scales.h"
#include "graph/specialise/specialise.h"
#include "models/batching/buckets.h"
#include "models/batching/costly_buckets.h"
#include "models/batching/describe.h"
#include "models/batching/exact_programs.h"
#include "models/batching/packed_buckets.h"
#include "models/batching/probe.h"
#include "models/batching/probe_cache.h"
#include "models/latency.h"
#include "models/loading/file_state.h"
#include "models/loading/fingerprint.h"
#include "models/loading/kept_graph.h"
#include "models/loading/model_files.h"
#include "models/loading/program_folder.h"
#include "models/loading/samples.h"
#include "models/loading/warm_up.h"
#include "models/planner.h"
#include "models/start/start_budget.h"
#include "models/text/calibration_text.h"
#include "models/text/load_text.h"
#include "models/whole/whole.h"

#define PATH_BYTES_MAX 4096
#define SEQUENCE_DEFAULT 512
#define AUTO_BUCKETS 8 /* of the sequence axis, planned from observed lengths */

/* As Triton's configuration has it; NULL: all, or there is no memory for it. */
static const char *write_policy(model *m, const manifest_policy *policy)
{
    if (policy->kind == POLICY_ALL)
        return NULL;
    if (policy->kind == POLICY_LATEST)
        return arena_format(&m->memory, "{\"latest\":{\"num_versions\":%d}}", policy->latest);
    const char *list = "";
    for (int i = 0; i < policy->count && list != NULL; i++)
        list = arena_format(&m->memory, "%s%s%lld", list, i ? "," : "",
                            (long long)policy->versions[i]);
    return list ? arena_format(&m->memory, "{\"specific\":{\"versions\":[%s]}}", list) : NULL;
}

static void set_batching(model *m, const load_request *r, const manifest *file)
{
    const load_options *o = r->options;
    model_batching *b = &m->batching;
    b->batch_max = file->batch_bucket_count ? file->batch_buckets[file->batch_bucket_count - 1]
                   : file->batch_max        ? file->batch_max
                   : o->batch_max           ? o->batch_max
                                            : 16;
    b->sequence_max = file->sequence_bucket_count
                          ? file->sequence_buckets[file->sequence_bucket_count - 1]
                      : file->sequence_max ? file->sequence_max
                      : o->sequence_max    ? o->sequence_max
                                           : SEQUENCE_DEFAULT;
    b->queue_delay_ns = file->has_queue_delay ? file->queue_delay_ns : o->queue_delay_ns;
    b->queue_rows_max = file->queue_rows_max ? file->queue_rows_max
                        : o->queue_rows_max  ? o->queue_rows_max
                                             : 2048;
    m->budget = (graph_budget){
        .activation_bytes_max = o->activation_bytes_max ? o->activation_bytes_max
                                                        : graph_budget_default.activation_bytes_max,
        .operations_max =
            o->operations_max ? o->operations_max : graph_budget_default.operations_max,
        .cancel = r->cancel};
    m->slo_ns = file->slo_ns;
    m->priority = file->priority;
    m->weight = file->weight;
    m->fits = file->fits;
    m->version_policy = write_policy(m, &file->policy);
    m->on_device.precision = r->precision          ? *r->precision
                             : file->has_precision ? file->precision
                                                   : o->precision;
}

/* Rows that run at their own length have no buckets that would cost more with longer ones: where
 * nobody asks for a limit, and the search for the longest row met none, the budget is theirs. */
static void lift_limit(model *m, const load_request *r, const manifest *file)
{
    bool is_asked_for = r->options->sequence_max > 0 || file->sequence_max > 0 ||
                        file->sequence_bucket_count > 0 || m->graph->sequence_max > 0;
    if (is_asked_for || !model_is_exact(m) || m->batching.sequence_max < SEQUENCE_DEFAULT)
        return;
    m->batching.sequence_max = LOAD_ROW_MAX;
    log_info("models", "%s: rows run at their own length: up to %lld tokens", m->name,
             (long long)LOAD_ROW_MAX);
}

/* Any failure leaves m->weights_holder NULL. */
static status compile_holder(model *m, int64_t length)
{
    device *cpu = m->devices[m->device_count - 1];
    device_program *made = NULL;
    status failure = cpu->interface->compile(cpu, &m->on_device, (device_bucket){1, length}, &made);
    m->weights_holder = failure ? NULL : made;
    return failure;
}

/* A model's packed weights live as long as one program of it: this one keeps them between probe
 * runs and until the last bucket is released. If it does not compile, they are packed more often.
 * `length`: of its one row; the longest row, where it is known, so that workspaces grow once.
 * Unless only a ragged encoder on the CPU runs the model, its matrices are stored transposed.
 * STATUS_OUT_OF_MEMORY: a model that lacks something for that is not served. */
static status hold_weights(model *m, int64_t length)
{
    device *cpu = m->devices[m->device_count - 1];
    if (compile_holder(m, length) == STATUS_OUT_OF_MEMORY)
        return STATUS_OUT_OF_MEMORY;
    bool is_ragged = m->weights_holder != NULL && m->weights_holder->layout == DEVICE_RAGGED;
    if ((is_ragged && m->device_count == 1) ||
        !graph_fold_transposed(m->graph, &m->budget, cpu_evaluate_node))
        return graph_check_memory(m->graph);
    status failure = graph_check_memory(m->graph);
    if (!failure && !is_ragged && m->weights_holder != NULL) {
        cpu->interface->release(cpu, m->weights_holder);
        failure = compile_holder(m, length);
    }
    return failure == STATUS_OUT_OF_MEMORY ? failure : STATUS_OK;
}

/* Appends to the note; without memory it stays as it was. */
static void add_note(model *m, const char *separator, const char *text)
{
    const char *both = arena_format(&m->memory, "%s%s%s", m->batching_note,
                                    m->batching_note[0] && text[0] ? separator : "", text);
    if (both)
        m->batching_note = both;
}

/* Notes how the largest bucket runs on the CPU. */
static void note_cpu_program(model *m)
{
    device *cpu = m->devices[m->device_count - 1];
    device_program *program = m->weights_holder;
    if (m->bucket_count > 0 && m->buckets[m->bucket_count - 1].programs[m->device_count - 1])
        program = m->buckets[m->bucket_count - 1].programs[m->device_count - 1];
    char how[4096] = "";
    if (program && cpu->interface->explain)
        cpu->interface->explain(cpu, program, how, sizeof how);
    add_note(m, "; on the CPU: ", how);
}

/* Such a model is served all the same; its owner should know. */
static void warn_of_scales(model *m)
{
    const char *first = "";
    int count = graph_count_nonfinite_scales(m->graph, &first);
    if (count == 0)
        return;
    const char *text = arena_format(
        &m->memory,
        "%d nodes (first '%s') have a quantisation scale that is infinite or not a number, so "
        "their "
        "results are meaningless: calibrate again without the operators around the attention mask",
        count, first);
    if (text == NULL)
        return;
    log_warning("models", "%s: %s", m->name, text);
    add_note(m, "; ", text);
}

/* The path of "warm_up": beside model.json unless it is absolute. */
static void warm_up_path(const load_request *r, const manifest *file, char path[PATH_BYTES_MAX])
{
    const char *slash = r->manifest ? strrchr(r->manifest, '/') : NULL;
    bool is_beside = slash != NULL && file->warm_up[0] != '/';
    snprintf(path, PATH_BYTES_MAX, "%.*s%s", is_beside ? (int)(slash + 1 - r->manifest) : 0,
             is_beside ? r->manifest : "", file->warm_up);
}

/* Real inputs, if the file of "warm_up" has some. */
static status read_samples(model *m, const load_request *r, const manifest *file)
{
    char path[PATH_BYTES_MAX];
    if (file->warm_up == NULL)
        return STATUS_OK;
    warm_up_path(r, file, path);
    struct stat s;
    if (stat(path, &s) == 0 && !S_ISREG(s.st_mode)) /* reading a FIFO would never end */
        return status_fail(STATUS_INVALID_ARGUMENT, "warm_up: %s: not a regular file", path);
    device_samples *samples = arena_allocate(&m->memory, sizeof *samples);
    if (samples == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for samples");
    status failure = samples_read(path, &m->memory, samples);
    if (failure)
        return status_prefix(failure, "warm_up");
    m->on_device.samples = samples->count > 0 ? samples : NULL;
    return STATUS_OK;
}

/* "buckets": "auto" with observed lengths: AUTO_BUCKETS sizes that waste least. */
static status make_buckets(model *m, const load_request *r, const manifest *file)
{
    if (file->warm_up == NULL || file->sequence_bucket_count > 0 || m->batching.sequence_max == 0 ||
        m->batching.sequence_max > PLANNER_LENGTH_MAX)
        return buckets_make(m, file);
    char path[PATH_BYTES_MAX];
    warm_up_path(r, file, path);
    length_histogram *h;
    planner_plan plan;
    status failure = length_histogram_read(path, &h);
    if (failure)
        return status_prefix(failure, "warm_up");
    manifest planned = *file;
    failure = length_histogram_total(h) == 0
                  ? status_fail(STATUS_INVALID_ARGUMENT, "warm_up: %s holds no lengths", path)
                  : planner_make(h, AUTO_BUCKETS, NULL, m->batching.sequence_max, &plan);
    free(h);
    if (failure)
        return failure;
    /* The file may hold longer rows than the model accepts. */
    for (int i = 0; i < plan.count && plan.buckets[i].sequence <= m->batching.sequence_max; i++)
        planned.sequence_buckets[planned.sequence_bucket_count++] = plan.buckets[i].sequence;
    return buckets_make(m, &planned);
}

static bool is_batch_asked_for(const manifest *file)
{
    return file->batch_bucket_count > 0 || file->batch_max > 0;
}

/* The CPU alone runs the model, and nobody asked for large batches. */
static status drop_useless(model *m, const manifest *file)
{
    int64_t before = m->batching.batch_max;
    if (m->start == NULL || m->device_count > 1 || is_batch_asked_for(file))
        return STATUS_OK;
    status failure = costly_buckets_cap(m);
    if (failure || m->batching.batch_max == before)
        return failure;
    add_note(m, "; ",
             arena_format(&m->memory,
                          "at most %lld row%s a batch: a core gains nothing "
                          "from larger ones",
                          (long long)m->batching.batch_max, m->batching.batch_max == 1 ? "" : "s"));
    return STATUS_OK;
}

/* Before anything large is computed. A ragged encoder's memory does not grow with the batch. */
static status drop_costly(model *m, const manifest *file)
{
    int64_t dropped;
    if (m->weights_holder != NULL && m->weights_holder->layout == DEVICE_RAGGED)
        return STATUS_OK;
    status failure = costly_buckets_drop(m, file, &dropped);
    if (failure || dropped == 0)
        return failure ? failure : drop_useless(m, file);
    log_warning("models", "%s: batches of %lld rows and more cost too much: %s", m->name,
                (long long)dropped, status_message());
    add_note(m, "; ", "without ");
    add_note(m, "", status_message());
    return drop_useless(m, file);
}

/* For devices with static shapes, and for tools, which print what such a device would get. */
static status make_packed(model *m, const load_request *r, const manifest *file)
{
    if (m->device_count == 1 && !r->options->allows_no_device)
        return STATUS_OK;
    packed_buckets_examine(m, file->has_packing ? file->packing : r->options->packing);
    log_info("models", "%s: %s%s", m->name,
             m->packed_encoder ? "several sequences may share a row" : "one sequence per row: ",
             m->packing_note);
    bool is_auto = file->batch_bucket_count == 0;
    return packed_buckets_add(m, is_auto ? BUCKETS_TOKENS_MAX : 0);
}

/* Whether an earlier start has kept what it found out about the model. */
static bool load_known(model *m, const load_request *r, const manifest *file)
{
    bool is_known = probe_cache_load(m, file, r->options->cache_folder);
    if (m->start != NULL)
        m->start->is_known = is_known;
    return is_known;
}

static status run_whole(model *m, const load_request *r, const manifest *file)
{
    model_batching before = m->batching;
    bool is_known = load_known(m, r, file);
    status failure = compile_holder(m, 1);
    if (failure == STATUS_OUT_OF_MEMORY || cancel_is_end(failure))
        return failure;
    if (failure)
        return status_fail(STATUS_UNSUPPORTED, "%s", status_message());
    failure = whole_try(m, is_known);
    if (!failure)
        failure = make_buckets(m, r, file);
    if (!failure && !is_known)
        probe_cache_store(m, file, &before, r->options->cache_folder);
    return failure;
}

/* The batching probe, or its cached results; then the buckets. */
static status probe_batching(model *m, const load_request *r, const manifest *file)
{
    char text[200];
    if (model_is_whole(m))
        return run_whole(m, r, file);
    model_batching before = m->batching;
    bool is_known = load_known(m, r, file);
    bool has_sequence = m->batching.sequence_max > 0;
    status failure = hold_weights(m, !has_sequence ? 0 : is_known ? m->batching.sequence_max : 1);
    snprintf(text, sizeof text, "%s: probing how it may be batched", m->name);
    r->report(r->context, text);
    if (!failure && !is_known)
        failure = probe_model(m, file);
    if (!failure)
        failure = make_buckets(m, r, file);
    bool is_changed = false;
    if (!failure && !is_known)
        failure = probe_confirm(m, &is_changed);
    if (!failure && is_changed)
        failure = make_buckets(m, r, file);
    if (!failure && !is_known)
        probe_cache_store(m, file, &before, r->options->cache_folder);
    if (!failure)
        failure = drop_costly(m, file);
    return failure ? failure : make_packed(m, r, file);
}

/* Beside the CPU. */
static bool has_device(const model *m)
{
    for (int d = 0; d + 1 < m->device_count; d++)
        if (!device_is_absent(m->devices[d]))
            return true;
    return false;
}

/* A model given as programs: its buckets are theirs. */
static status use_programs(model *m, const load_request *r, const manifest *file)
{
    const char *why = r->options->no_device_reason;
    m->on_device.precision = DEVICE_FP32; /* not used: the programs have their own */
    if (!has_device(m) && !r->options->allows_no_device)
        return status_fail(
            STATUS_UNAVAILABLE,
            "StableHLO programs run on PJRT devices only, and this server has no such "
            "device: %s",
            why ? why : "start it with --device pjrt:PLUGIN.so");
    return program_folder_make_buckets(m, file);
}

/* model.json may say more than the files beside the tokenizer. */
static status read_text_files(model *m, const manifest *file, const load_request *r)
{
    status failure = model_text_load(m, r->folder);
    if (failure || m->text == NULL) {
        if (!failure)
            log_debug("models", "%s takes no text: %s", m->name, m->text_note);
        return failure;
    }
    if (file->dimension_count > 0) {
        m->text->dimension_count = file->dimension_count;
        memcpy(m->text->dimensions, file->dimensions, sizeof file->dimensions);
    }
    log_info("models", "%s takes text: %s, at most %lld tokens", m->name, m->text->file,
             (long long)m->text->tokens_max);
    return STATUS_OK;
}

/* For devices that calibrate int8 and have no samples of the operator's. */
static status make_text_samples(model *m)
{
    if (m->text == NULL || m->on_device.encoder == NULL || m->on_device.samples != NULL)
        return STATUS_OK;
    device_samples *samples = arena_allocate(&m->memory, sizeof *samples);
    if (samples == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for samples");
    status failure = model_text_samples(m->text, &m->memory, samples);
    if (!failure && samples->count > 0)
        m->on_device.text_samples = m->on_packed.text_samples = samples;
    return failure;
}

/* A model read from files that somebody was writing may be half of each. */
static status check_unchanged(const load_request *r, uint64_t before)
{
    if (file_state(r->folder) == before)
        return STATUS_OK;
    return status_fail(STATUS_UNAVAILABLE, "its files changed while they were read");
}

/* From the cache, or from its files. */
static status import_model(model *m, const load_request *r, const manifest *file, bool *is_hf)
{
    const char *cache = r->options->cache_folder;
    m->on_device.model_key = fingerprint_recorded(r->folder, cache, clock_wall_ns());
    kept_graph_name(m, r, file);
    if (kept_graph_load(m))
        return STATUS_OK;
    status failure = model_files_import(m, r->folder, file, r->options->copies_files, is_hf);
    if (failure)
        return failure;
    if (m->on_device.model_key == 0) {
        m->on_device.model_key = fingerprint_model(r->folder, cache, clock_wall_ns());
        kept_graph_name(m, r, file);
    }
    return STATUS_OK;
}

static status make(model *m, const load_request *r, const manifest *file)
{
    bool is_hf = false;
    uint64_t start_ns = clock_now_ns(), before = file_state(r->folder);
    char text[200];
    snprintf(text, sizeof text, "%s: reading", m->name);
    r->report(r->context, text);
    set_batching(m, r, file);
    status failure = import_model(m, r, file, &is_hf);
    if (failure)
        return failure;
    /* Rows must not be longer than the model's position table. */
    if (m->graph->sequence_max > 0 && m->batching.sequence_max > m->graph->sequence_max)
        m->batching.sequence_max = m->graph->sequence_max;
    m->on_device.graph = m->graph;
    m->on_device.budget = &m->budget;
    m->on_device.name = m->name;
    /* What caches keep under that key must be of these files. */
    failure = check_unchanged(r, before);
    if (!failure)
        failure = cancel_check(r->cancel);
    if (!failure)
        failure = read_samples(m, r, file);
    if (failure)
        return failure;
    failure = describe_tensors(m, file, is_hf);
    if (failure)
        return failure;
    failure = m->on_device.exported != NULL ? use_programs(m, r, file) : probe_batching(m, r, file);
    if (failure)
        return failure;
    lift_limit(m, r, file);
    failure = read_text_files(m, file, r);
    if (!failure)
        failure = make_text_samples(m);
    if (failure)
        return failure;
    if (model_is_exact(m)) {
        m->exact_programs = exact_programs_create(m->devices[m->device_count - 1]);
        if (m->exact_programs == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
    }
    if (m->batching.sequence_max > 0)
        m->lengths = length_histogram_create(m->batching.sequence_max < PLANNER_LENGTH_MAX
                                                 ? m->batching.sequence_max
                                                 : PLANNER_LENGTH_MAX);
    m->latency = latency_create(m->devices, m->device_count);
    if (m->latency == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
    m->load_ns = clock_now_ns() - start_ns;
    bool can_run = m->on_device.exported == NULL || m->device_count > 1;
    /* Batches that model.json asks for are made before ready; so is all that another device needs.
     */
    if (m->device_count > 1 || is_batch_asked_for(file))
        m->start = NULL;
    if (can_run && !r->options->skips_warm_up)
        failure = warm_up_model(m, r->report, r->context);
    if (!failure)
        failure = check_unchanged(r, before);
    if (!failure) {
        note_cpu_program(m);
        warn_of_scales(m);
    }
    return failure;
}

status load_model(const load_request *r, model **out)
{
    manifest file;
    status failure = cancel_check(r->cancel);
    if (!failure)
        failure = r->manifest_text == NULL ? manifest_read(r->manifest, &file)
                                           : manifest_read_text(r->manifest, r->manifest_text,
                                                                strlen(r->manifest_text), &file);
    if (failure)
        return failure;
    model *m = model_create();
    if (m == NULL) {
        manifest_dispose(&file);
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
    }
    m->name = arena_copy_string(&m->memory, r->name, strlen(r->name));
    m->folder = arena_copy_string(&m->memory, r->folder, strlen(r->folder));
    m->version = r->version;
    m->devices = r->devices;
    m->device_count = r->device_count;
    m->batching_note = m->packing_note = m->text_note = "";
    start_budget start = {.operations_max = r->options->start_operations_max};
    m->start = start.operations_max > 0 ? &start : NULL;
    failure = m->name != NULL && m->folder != NULL
                  ? make(m, r, &file)
                  : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
    /* They belong to the load. */
    m->start = NULL;
    m->budget.cancel = NULL;
    manifest_dispose(&file);
    if (failure) {
        load_destroy(m);
        return failure;
    }
    log_info("models",
             "%s version %lld is ready: %s, %d buckets, loaded in %.0f ms, warm-up %.0f ms",
             m->name, (long long)m->version, m->graph->source ? m->graph->source : m->platform,
             m->bucket_count, (double)m->load_ns / 1e6, (double)m->warm_up_ns / 1e6);
    *out = m;
    return STATUS_OK;
}

void load_keep(const model *m)
{
    device *cpu = m->devices[m->device_count - 1];
    if (m->weights_holder != NULL && cpu->interface->keep != NULL)
        cpu->interface->keep(cpu, m->weights_holder);
    kept_graph_store(m);
}

void load_destroy(model *m)
{
    warm_up_undo(m);
    exact_programs_destroy(m->exact_programs);
    if (m->weights_holder)
        m->devices[m->device_count - 1]->interface->release(m->devices[m->device_count - 1],
                                                            m->weights_holder);
    packed_buckets_dispose(m);
    model_text_dispose(m);
    latency_destroy(m->latency);
    free(m->lengths);
    graph_destroy(m->graph);
    arena_dispose(&m->memory);
    model_destroy(m);
}
