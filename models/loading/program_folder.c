#include "models/loading/program_folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "devices/exported.h"
#include "graph/file_store.h"
#include "graph/safetensors.h"
#include "models/loading/jax_export.h"

#define PATH_BYTES_MAX 4096
#define FILE_BYTES_MAX ((size_t)8 << 30)
#define AXIS_SIZE_MAX (1 << 20)

#define NAMES "program.BATCH.mlir, or program.BATCHxLENGTH.mlir with a sequence axis"

static bool is_program_name(const char *name)
{
    size_t bytes = strlen(name);
    return strncmp(name, "program", 7) == 0 && bytes >= sizeof "program.mlir" - 1 &&
           strcmp(name + bytes - 5, ".mlir") == 0;
}

bool program_folder_has(const char *folder)
{
    bool found = false;
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && !found && (e = readdir(d)) != NULL;)
        found = is_program_name(e->d_name);
    if (d != NULL)
        closedir(d);
    return found;
}

/* A size without leading zeros; moves `*text` behind it. */
static bool read_size(const char **text, int64_t *out)
{
    int64_t size = 0;
    const char *p = *text;
    if (*p < '1' || *p > '9')
        return false;
    for (; *p >= '0' && *p <= '9' && size <= AXIS_SIZE_MAX; p++)
        size = size * 10 + (*p - '0');
    *text = p;
    *out = size;
    return size <= AXIS_SIZE_MAX;
}

static status read_bucket(const char *name, device_bucket *out)
{
    const char *p = name + 7;
    bool is_good = *p++ == '.' && read_size(&p, &out->batch);
    out->sequence = 0;
    if (is_good && *p == 'x') {
        p++;
        is_good = read_size(&p, &out->sequence);
    }
    if (is_good && strcmp(p, ".mlir") == 0)
        return STATUS_OK;
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "%s: the name has no bucket: it must be " NAMES ", sizes up to %d, such as "
                       "program.8x128.mlir",
                       name, AXIS_SIZE_MAX);
}

static bool has_sequence(const manifest_program *p)
{
    for (int i = 0; i < p->input_count; i++)
        for (int k = 0; k < p->inputs[i].rank; k++)
            if (p->inputs[i].dims[k] == MANIFEST_DIM_SEQUENCE)
                return true;
    return false;
}

static void warn_of_calls(model *m, struct device_exported *exported, const char *name,
                          const char *calls)
{
    if (calls[0] == 0)
        return;
    exported->custom_calls = arena_copy_string(&m->memory, calls, strlen(calls));
    log_warning("models",
                "%s: %s: custom calls without a promise of jax.export: %s; another release of the "
                "plugin may not have them, or compute something else",
                m->name, name, calls);
}

/* Text begins with "module" or an attribute alias, after comments; bytecode with its magic. Of a
 * serialised Exported, `*p` becomes the artifact in it. */
static status open_content(model *m, struct device_exported *exported, device_exported_program *p,
                           jax_export *e)
{
    static const char magic[4] = {'M', 'L', (char)0xef, 'R'};
    char calls[sizeof e->custom_calls];
    if (p->bytes >= sizeof magic && memcmp(p->data, magic, sizeof magic) == 0)
        return STATUS_OK;
    if (memchr(p->data, 0, p->bytes) == NULL && p->bytes > 0 &&
        memmem(p->data, p->bytes, "func.func", 9) != NULL) {
        jax_export_find_custom_calls(p->data, p->bytes, calls);
        warn_of_calls(m, exported, p->name, calls);
        return STATUS_OK;
    }
    if (!jax_export_is(p->data, p->bytes))
        return status_fail(STATUS_CORRUPT,
                           "%s: neither StableHLO text, nor MLIR bytecode, nor what serialize() of "
                           "a jax.export.Exported returns",
                           p->name);
    status s = jax_export_open(p->name, p->data, p->bytes, e);
    if (s)
        return s;
    p->data = e->module;
    p->bytes = e->module_bytes;
    warn_of_calls(m, exported, p->name, e->custom_calls);
    return STATUS_OK;
}

static status read_program(model *m, struct device_exported *exported, const char *folder,
                           const char *name, bool wants_sequence, device_exported_program *out,
                           jax_export *e)
{
    char path[PATH_BYTES_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    *out = (device_exported_program){.name = arena_copy_string(&m->memory, name, strlen(name))};
    if (out->name == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
    status failure = read_bucket(name, &out->bucket);
    if (!failure && (out->bucket.sequence > 0) != wants_sequence)
        failure = status_fail(STATUS_INVALID_ARGUMENT,
                              "%s: model.json's program.inputs have %s sequence axis, so the name "
                              "must be program.BATCH%s.mlir",
                              name, wants_sequence ? "a" : "no", wants_sequence ? "xLENGTH" : "");
    if (!failure)
        failure = file_store_open(m->graph, path, FILE_BYTES_MAX, &out->data, &out->bytes);
    return failure ? failure : open_content(m, exported, out, e);
}

static int compare_programs(const void *a, const void *b)
{
    const device_bucket *x = &((const device_exported_program *)a)->bucket,
                        *y = &((const device_exported_program *)b)->bucket;
    if (x->sequence != y->sequence)
        return x->sequence < y->sequence ? -1 : 1;
    return x->batch < y->batch ? -1 : x->batch > y->batch;
}

/* All programs must take the same arguments: `*first` is that of the first serialised Exported. */
static status check_same_arguments(const char *name, const jax_export *e, jax_export *first)
{
    if (e->module == NULL)
        return STATUS_OK;
    if (first->module == NULL)
        *first = *e;
    if (e->argument_count == first->argument_count && e->kept_count == first->kept_count &&
        (e->kept_count == 0 || memcmp(e->kept, first->kept, 2 * (size_t)e->kept_count) == 0))
        return STATUS_OK;
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "%s: takes other arguments than the programs of the other buckets: export "
                       "all of them with jax.jit(f, keep_unused=True)",
                       name);
}

/* `*of_jax`: zeroed; set where programs are serialised Exporteds. */
static status read_programs(model *m, const char *folder, const manifest_program *p,
                            struct device_exported *exported, jax_export *of_jax)
{
    device_exported_program *programs =
        arena_allocate_zeroed(&m->memory, MODEL_BUCKETS_MAX, sizeof *programs);
    if (programs == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
    status failure = STATUS_OK;
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && !failure && (e = readdir(d)) != NULL;) {
        if (!is_program_name(e->d_name))
            continue;
        jax_export of_this = {0};
        if (exported->program_count == MODEL_BUCKETS_MAX)
            failure = status_fail(STATUS_INVALID_ARGUMENT, "over %d programs", MODEL_BUCKETS_MAX);
        else
            failure = read_program(m, exported, folder, e->d_name, has_sequence(p),
                                   &programs[exported->program_count++], &of_this);
        if (!failure)
            failure = check_same_arguments(e->d_name, &of_this, of_jax);
    }
    if (d != NULL)
        closedir(d);
    qsort(programs, (size_t)exported->program_count, sizeof *programs, compare_programs);
    exported->programs = programs;
    return failure;
}

static graph_dim dim_of(int64_t declared)
{
    return declared == MANIFEST_DIM_BATCH      ? (graph_dim){.batch = 1}
           : declared == MANIFEST_DIM_SEQUENCE ? (graph_dim){.sequence = 1}
                                               : graph_dim_constant(declared);
}

static void add_tensors(graph *g, const manifest_program *p)
{
    graph_dim dims[TENSOR_RANK_MAX];
    for (int i = 0; i < p->input_count; i++) {
        const manifest_tensor *t = &p->inputs[i];
        for (int k = 0; k < t->rank; k++)
            dims[k] = dim_of(t->dims[k]);
        graph_add_input(g, t->name, t->dtype, t->rank, dims);
    }
    for (int i = 0; i < p->output_count; i++) {
        const manifest_tensor *t = &p->outputs[i];
        graph_value_index index = graph_add_value(g, NULL);
        graph_value *v = &g->values[index];
        v->dtype = t->dtype;
        v->has_dtype = true;
        v->shape.rank = t->rank;
        for (int k = 0; k < t->rank; k++)
            v->shape.dims[k] = dim_of(t->dims[k]);
        graph_add_output(g, index, NULL);
        /* An input may have the same name, which values of a graph may not. */
        g->values[index].name = arena_copy_string(&g->memory, t->name, strlen(t->name));
    }
}

static int find_input(const manifest_program *p, const char *name)
{
    for (int i = 0; i < p->input_count; i++)
        if (strcmp(p->inputs[i].name, name) == 0)
            return i;
    return -1;
}

/* Argument `i` of the programs: an input, or a tensor of the weights' file. */
static status read_argument(model *m, const manifest_program *p, const safetensors *weights, int i,
                            device_exported_argument *out)
{
    const char *name = p->arguments != NULL ? p->arguments[i] : p->inputs[i].name;
    const safetensors_entry *weight = p->weights ? safetensors_find(weights, name) : NULL;
    *out = (device_exported_argument){arena_copy_string(&m->memory, name, strlen(name)),
                                      find_input(p, name), GRAPH_NO_VALUE};
    if (out->input >= 0 && weight != NULL)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "model.json: program.arguments[%d]: \"%s\" is an input and in %s", i,
                           name, p->weights);
    if (out->input >= 0)
        return STATUS_OK;
    if (weight == NULL)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "model.json: program.arguments[%d]: \"%s\" is no input%s%s", i, name,
                           p->weights ? " and not in " : "; \"program.weights\" names no file",
                           p->weights ? p->weights : "");
    if (!weight->has_known_type || tensor_count(&weight->value) == 0)
        return status_fail(STATUS_UNSUPPORTED, "%s: \"%s\": type %s%s", p->weights, name,
                           weight->type_name,
                           weight->has_known_type ? ", no elements" : " is not known here");
    out->weight = graph_add_constant(m->graph, NULL, &weight->value);
    return STATUS_OK;
}

/* An argument that JAX has dropped, because nothing reads it, is left out. */
static status count_arguments(const manifest_program *p, const jax_export *of_jax, int *out)
{
    int listed = p->arguments != NULL ? p->argument_count : p->input_count;
    if (of_jax->module == NULL) {
        *out = listed;
        return STATUS_OK;
    }
    if (of_jax->argument_count != listed)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "the exported function takes %d arguments, model.json lists %d",
                           of_jax->argument_count, listed);
    *out = of_jax->kept_count;
    return STATUS_OK;
}

static status match_arguments(model *m, const manifest_program *p, const safetensors *weights,
                              const jax_export *of_jax, struct device_exported *exported)
{
    bool is_used[MODEL_TENSORS_MAX] = {false};
    int count = 0;
    status failure = count_arguments(p, of_jax, &count);
    if (failure)
        return failure;
    device_exported_argument *arguments =
        arena_allocate_zeroed(&m->memory, (size_t)count + 1, sizeof *arguments);
    if (arguments == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
    for (int i = 0; i < count; i++) {
        int listed = of_jax->module != NULL ? jax_export_kept(of_jax, i) : i;
        failure = read_argument(m, p, weights, listed, &arguments[i]);
        if (failure)
            return failure;
        int input = arguments[i].input;
        if (input >= 0 && is_used[input])
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "model.json: program.arguments[%d]: \"%s\" is listed twice", listed,
                               arguments[i].name);
        if (input >= 0)
            is_used[input] = true;
    }
    bool has_dropped = of_jax->module != NULL && count < of_jax->argument_count;
    for (int i = 0; i < p->input_count && !has_dropped; i++)
        if (!is_used[i])
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "model.json: program.arguments: input \"%s\" is missing",
                               p->inputs[i].name);
    exported->arguments = arguments;
    exported->argument_count = count;
    return STATUS_OK;
}

static status read_arguments(model *m, const char *folder, const manifest_program *p,
                             const jax_export *of_jax, struct device_exported *exported)
{
    safetensors weights = {0};
    if (p->weights == NULL)
        return match_arguments(m, p, &weights, of_jax, exported);
    char path[PATH_BYTES_MAX];
    const uint8_t *data;
    size_t bytes;
    snprintf(path, sizeof path, "%s/%s", folder, p->weights);
    status failure = file_store_open(m->graph, path, FILE_BYTES_MAX, &data, &bytes);
    if (failure)
        return status_prefix(failure, "model.json: program.weights");
    failure = safetensors_open(&weights, data, bytes);
    if (failure)
        return status_prefix(failure, "%s", p->weights);
    failure = match_arguments(m, p, &weights, of_jax, exported);
    safetensors_close(&weights);
    return failure;
}

status program_folder_open(model *m, const char *folder, const manifest *file)
{
    const manifest_program *p = file->program;
    struct device_exported *exported = arena_allocate_zeroed(&m->memory, 1, sizeof *exported);
    m->platform = "stablehlo";
    m->graph = graph_create(m->name);
    if (m->graph == NULL || exported == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
    if (p == NULL)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "model.json: program: is missing: it declares inputs and outputs of the "
                           "StableHLO programs of %s (docs/models.md)",
                           folder);
    add_tensors(m->graph, p);
    jax_export of_jax = {0};
    status failure = read_programs(m, folder, p, exported, &of_jax);
    if (!failure)
        failure = read_arguments(m, folder, p, &of_jax, exported);
    if (failure)
        return status_prefix(failure, "%s", folder);
    bool is_bytecode = exported->programs[0].data[0] == 'M' && exported->programs[0].data[1] == 'L';
    m->graph->source = of_jax.module != NULL ? "jax.export"
                       : is_bytecode         ? "stablehlo portable artifact"
                                             : "stablehlo text";
    m->on_device.exported = exported;
    return STATUS_OK;
}

/* --- buckets --- */

static bool contains(const int64_t *sizes, int count, int64_t size)
{
    for (int i = 0; i < count; i++)
        if (sizes[i] == size)
            return true;
    return false;
}

/* Every declared bucket must have its program, and every program be declared. */
static status compare_with_declared(const model *m, const manifest *file)
{
    const struct device_exported *exported = m->on_device.exported;
    for (int i = 0; i < exported->program_count; i++) {
        device_bucket b = exported->programs[i].bucket;
        bool is_batch = file->batch_bucket_count == 0 ||
                        contains(file->batch_buckets, file->batch_bucket_count, b.batch);
        bool is_sequence =
            file->sequence_bucket_count == 0 ||
            contains(file->sequence_buckets, file->sequence_bucket_count, b.sequence);
        if (!is_batch || !is_sequence)
            return status_fail(STATUS_INVALID_ARGUMENT, "%s: model.json: buckets.%s has no %lld",
                               exported->programs[i].name, is_batch ? "sequence" : "batch",
                               (long long)(is_batch ? b.sequence : b.batch));
    }
    for (int i = 0; i < file->batch_bucket_count; i++)
        for (int k = 0;
             k < file->sequence_bucket_count || (k == 0 && m->batching.sequence_max == 0); k++) {
            device_bucket b = {file->batch_buckets[i],
                               m->batching.sequence_max > 0 ? file->sequence_buckets[k] : 0};
            if (device_exported_find(exported, b) == NULL)
                return status_fail(STATUS_INVALID_ARGUMENT,
                                   "model.json: buckets: there is no program.%lld%s%.0lld.mlir",
                                   (long long)b.batch, b.sequence ? "x" : "",
                                   (long long)b.sequence);
        }
    return STATUS_OK;
}

/* Programs cannot be probed, since only whole buckets run: model.json declares what rows allow. */
static status check_rows(const model *m, const manifest *file)
{
    const model_batching *b = &m->batching;
    if (file->can_batch == 0 && b->batch_max > 1)
        return status_fail(
            STATUS_INVALID_ARGUMENT,
            "model.json: can_batch: false, but there are programs for %lld rows, and "
            "their unused rows are filled",
            (long long)b->batch_max);
    if (b->sequence_max > 0 && file->can_pad != 1)
        return status_fail(
            STATUS_INVALID_ARGUMENT,
            "model.json: can_pad: must be true: rows are padded to the programs' lengths, and only "
            "their exporter knows that padding changes nothing");
    return STATUS_OK;
}

static void add_size(int64_t *sizes, int *count, int64_t size)
{
    int at = *count;
    if (contains(sizes, *count, size))
        return;
    for (; at > 0 && sizes[at - 1] > size; at--)
        sizes[at] = sizes[at - 1];
    sizes[at] = size;
    ++*count;
}

static status write_note(model *m)
{
    const char *calls = m->on_device.exported->custom_calls;
    char note[400];
    int bytes = snprintf(note, sizeof note,
                         "StableHLO programs: PJRT devices only; rows are batched and padded "
                         "because model.json declares it%s%s",
                         calls ? "; custom calls without a promise of jax.export: " : "",
                         calls ? calls : "");
    m->batching_note = arena_copy_string(&m->memory, note, (size_t)bytes);
    return m->batching_note ? STATUS_OK
                            : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
}

status program_folder_make_buckets(model *m, const manifest *file)
{
    const struct device_exported *exported = m->on_device.exported;
    model_batching *b = &m->batching;
    b->can_batch = b->can_pad = true;
    b->batch_max = b->sequence_max = 0;
    m->bucket_count = m->batch_bucket_count = m->sequence_bucket_count = 0;
    for (int i = 0; i < exported->program_count; i++) {
        device_bucket shape = exported->programs[i].bucket;
        bool is_new = !contains(m->batch_buckets, m->batch_bucket_count, shape.batch);
        if ((is_new && m->batch_bucket_count == MODEL_AXIS_MAX) ||
            (m->sequence_bucket_count == MODEL_AXIS_MAX &&
             !contains(m->sequence_buckets, MODEL_AXIS_MAX, shape.sequence)))
            return status_fail(STATUS_INVALID_ARGUMENT, "%s: over %d sizes of one axis",
                               exported->programs[i].name, MODEL_AXIS_MAX);
        add_size(m->batch_buckets, &m->batch_bucket_count, shape.batch);
        add_size(m->sequence_buckets, &m->sequence_bucket_count, shape.sequence);
        model_bucket *bucket = &m->buckets[m->bucket_count++];
        bucket->shape = shape;
        bucket->programs =
            arena_allocate_zeroed(&m->memory, (size_t)m->device_count, sizeof *bucket->programs);
        if (bucket->programs == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for buckets");
        b->batch_max = shape.batch > b->batch_max ? shape.batch : b->batch_max;
        b->sequence_max = shape.sequence > b->sequence_max ? shape.sequence : b->sequence_max;
    }
    b->batch_basis = b->pad_basis = MODEL_BASIS_DECLARED;
    status failure = write_note(m);
    if (!failure)
        failure = check_rows(m, file);
    return failure ? failure : compare_with_declared(m, file);
}
