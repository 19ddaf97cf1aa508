#include "graph/import.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file_reader.h"
#include "graph/file_store.h"
#include "graph/onnx/importer.h"

#define FILE_BYTES_MAX_DEFAULT ((size_t)8 << 30)
#define NODES_MAX_DEFAULT 200000
#define IR_VERSION_MIN 3

/* The parser allocates in the graph's memory: names and tensor data are used in place. Tensor data
 * is aligned as base/tensor.h requires. */
static void *parser_allocate(void *context, size_t bytes)
{
    graph *g = context;
    void *p = arena_allocate_aligned(&g->memory, bytes ? bytes : 1, bytes >= 64 ? 64 : 16);
    if (p == NULL)
        graph_lack_memory(g);
    return p;
}

static void parser_free(void *context, void *p)
{
    (void)context;
    (void)p;
}

/* A page instead of a download, a list of weights: no ONNX file begins with a line of text. */
static status explain_text(status failure, const uint8_t *data, size_t bytes)
{
    size_t line = 0;
    while (line < bytes && line < 40 && data[line] >= ' ' && data[line] < 127)
        line++;
    bool is_line = line == bytes || line == 40 || data[line] == '\n' || data[line] == '\r';
    if (failure != STATUS_CORRUPT || line < 2 || !is_line)
        return failure;
    return status_fail(failure, "a text, not an ONNX model: it begins with '%.*s'", (int)line,
                       (const char *)data);
}

static status parse(graph *g, const uint8_t *data, size_t bytes, const Onnx__Model **out)
{
    if (bytes == 0)
        return status_fail(STATUS_CORRUPT, "the file is empty");
    status s = onnx_check_nesting(data, bytes);
    if (s)
        return explain_text(s, data, bytes);
    ProtobufCAllocator allocator = {parser_allocate, parser_free, g};
    const Onnx__Model *model = onnx__model__unpack(&allocator, bytes, data);
    if (model == NULL && (s = graph_check_memory(g)))
        return s;
    if (model == NULL) {
        s = status_fail(STATUS_CORRUPT, "not an ONNX model, or cut off: fetch or export it again");
        return explain_text(s, data, bytes);
    }
    if (model->graph == NULL)
        return status_fail(STATUS_CORRUPT, "an ONNX model without a graph");
    if (model->ir_version < IR_VERSION_MIN)
        return status_fail(STATUS_UNSUPPORTED, "ONNX IR version %lld; supported: %d and later",
                           (long long)model->ir_version, IR_VERSION_MIN);
    *out = model;
    return STATUS_OK;
}

/* Reads the ranks of intermediate values where the file has them: rewriting an old Softmax is
 * simpler with its rank. */
static status read_ranks(onnx_importer *m)
{
    m->ranks.memory = &m->scratch;
    for (size_t i = 0; i < m->model->graph->n_value_info; i++) {
        const Onnx__ValueInfo *info = m->model->graph->value_info[i];
        if (info->name != NULL && info->type != NULL && info->type->tensor_type != NULL &&
            info->type->tensor_type->shape != NULL &&
            !name_map_put(&m->ranks, info->name, (int32_t)info->type->tensor_type->shape->n_dim))
            return onnx_fail_memory();
    }
    return STATUS_OK;
}

static status add_outputs(onnx_scope *scope)
{
    const Onnx__Graph *proto = scope->importer->model->graph;
    name_map seen = {.memory = &scope->importer->scratch};
    if (proto->n_output == 0)
        return status_fail(STATUS_CORRUPT, "the graph has no outputs");
    for (size_t i = 0; i < proto->n_output; i++) {
        const char *name = proto->output[i]->name;
        graph_value_index value;
        int32_t other;
        if (name == NULL || name[0] == 0)
            return status_fail(STATUS_CORRUPT, "output %zu has no name", i);
        if (!onnx_scope_find(scope, name, &value))
            return status_fail(STATUS_CORRUPT, "output '%s' is not produced by any node", name);
        if (name_map_get(&seen, name, &other))
            return status_fail(STATUS_CORRUPT, "output '%s' is listed twice", name);
        if (!name_map_put(&seen, name, (int32_t)i))
            return onnx_fail_memory();
        graph *g = scope->importer->graph;
        graph_add_output(g, value, name);
        status s = graph_check_memory(g);
        if (s)
            return s;
        onnx_declare_type(g, g->outputs[i], proto->output[i]);
    }
    return STATUS_OK;
}

/* NULL: out of memory. */
static const char *describe_source(onnx_importer *m, int64_t opset)
{
    const char *producer = m->model->producer_name, *version = m->model->producer_version;
    bool has_producer = producer != NULL && producer[0] != 0;
    bool has_version = has_producer && version != NULL && version[0] != 0;
    return arena_format(&m->graph->memory, "onnx opset %lld%s%s%s%s", (long long)opset,
                        has_producer ? " by " : "", has_producer ? producer : "",
                        has_version ? " " : "", has_version ? version : "");
}

static status build(onnx_importer *m)
{
    onnx_scope scope = {
        .importer = m,
        .values = {.memory = &m->scratch},
        .prefix = "",
        .opsets = m->model->opset_import,
        .opset_count = m->model->n_opset_import,
    };
    m->graph->source = describe_source(m, onnx_scope_opset(&scope, ""));
    if (m->graph->source == NULL)
        return onnx_fail_memory();
    status s = read_ranks(m);
    if (s == STATUS_OK)
        s = onnx_index_functions(m);
    if (s == STATUS_OK)
        s = onnx_add_initializers(&scope, m->model->graph);
    if (s == STATUS_OK)
        s = onnx_add_inputs(&scope);
    if (s == STATUS_OK)
        s = onnx_emit_nodes(&scope, m->model->graph->node, m->model->graph->n_node);
    if (s == STATUS_OK)
        s = add_outputs(&scope);
    return s;
}

static status import_bytes(const void *data, size_t bytes, const char *folder,
                           const char *real_folder, const graph_import_options *options,
                           graph **out)
{
    onnx_importer m = {.folder = folder, .real_folder = real_folder};
    if (options != NULL)
        m.options = *options;
    if (m.options.file_bytes_max == 0)
        m.options.file_bytes_max = FILE_BYTES_MAX_DEFAULT;
    if (m.options.nodes_max == 0)
        m.options.nodes_max = NODES_MAX_DEFAULT;
    m.graph = graph_create("");
    if (m.graph == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory");
    m.graph->copies_files = m.options.copies_files;
    status s = parse(m.graph, data, bytes, &m.model);
    if (s == STATUS_OK) {
        const char *name = m.model->graph->name;
        m.graph->name = name != NULL ? name : "";
        s = build(&m);
    }
    arena_dispose(&m.scratch);
    if (s) {
        graph_destroy(m.graph);
        return s;
    }
    *out = m.graph;
    return STATUS_OK;
}

status graph_import_onnx_bytes(const void *data, size_t bytes, const char *folder,
                               const graph_import_options *options, graph **out)
{
    return import_bytes(data, bytes, folder, NULL, options, out);
}

/* The folder of a path. `folder` has PATH_MAX bytes. */
static void folder_of(const char *path, char *folder)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        memcpy(folder, ".", 2);
    else
        snprintf(folder, PATH_MAX, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

status graph_import_onnx(const char *path, const graph_import_options *options, graph **out)
{
    char folder[PATH_MAX], real[PATH_MAX], real_folder[PATH_MAX];
    size_t limit = options != NULL && options->file_bytes_max != 0 ? options->file_bytes_max
                                                                   : FILE_BYTES_MAX_DEFAULT;
    void *data;
    size_t bytes;
    status s = file_reader_read_whole(path, limit, &data, &bytes);
    if (s)
        return s;
    folder_of(path, folder);
    bool is_resolved = realpath(path, real) != NULL;
    if (is_resolved)
        folder_of(real, real_folder);
    s = file_store_reject_lfs_pointer(data, bytes);
    if (s == STATUS_OK)
        s = import_bytes(data, bytes, folder, is_resolved ? real_folder : NULL, options, out);
    free(data);
    return s ? status_prefix(s, "%s", path) : STATUS_OK;
}
