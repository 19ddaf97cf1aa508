#include "models/loading/kept_graph.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/identity/content_hash.h"
#include "base/log.h"
#include "graph/stored/stored_graph.h"

#define IS_WHOLE UINT64_C(1) /* a flag of the file */

struct kept_graph {
    char path[PATH_MAX], folder[PATH_MAX];
    uint64_t key, bytes_max;
    bool is_wanted; /* the model was imported, and its graph is not kept yet */
};

/* All that an import depends on. */
static uint64_t key_of(const model *m, const manifest *file)
{
    int64_t numbers[] = {(int64_t)m->on_device.model_key, m->budget.activation_bytes_max,
                         m->budget.operations_max, m->device_count, file->fixed_dim_count};
    uint64_t key = content_hash(0, numbers, sizeof numbers);
    for (int i = 0; i < file->fixed_dim_count; i++) {
        const graph_fixed_dim *d = &file->fixed_dims[i];
        key = content_hash(key, d->symbol, strlen(d->symbol) + 1);
        key = content_hash(key, &d->size, sizeof d->size);
    }
    return key;
}

void kept_graph_name(model *m, const load_request *r, const manifest *file)
{
    const char *folder = r->options->cache_folder;
    kept_graph *k = NULL;
    m->kept = NULL;
    if (folder != NULL && m->on_device.model_key != 0)
        k = arena_allocate_zeroed(&m->memory, 1, sizeof *k);
    if (k == NULL || snprintf(k->folder, sizeof k->folder, "%s", folder) >= PATH_MAX)
        return;
    k->key = key_of(m, file);
    k->is_wanted = true;
    k->bytes_max =
        r->options->cache_bytes_max > 0 ? (uint64_t)r->options->cache_bytes_max / 2 : UINT64_MAX;
    if (snprintf(k->path, sizeof k->path, "%s/%016llx.graph", folder, (unsigned long long)k->key) <
        PATH_MAX - 100)
        m->kept = k;
}

bool kept_graph_load(model *m)
{
    stored_graph_about about;
    graph *g = NULL;
    if (m->kept == NULL)
        return false;
    status failure = stored_graph_read(m->kept->path, m->kept->key, &g, &about);
    if (!failure && about.shapes != NULL && about.shape_count != g->input_count) {
        graph_destroy(g);
        failure = status_fail(STATUS_CORRUPT, "%s is damaged", m->kept->path);
    }
    if (failure) {
        if (failure != STATUS_NOT_FOUND)
            log_info("models", "%s: imported again: %s", m->name, status_message());
        return false;
    }
    m->kept->is_wanted = false;
    m->platform = "onnx";
    m->graph = g;
    m->on_device.is_whole = (about.flags & IS_WHOLE) != 0;
    m->whole_note = about.note;
    m->whole_inputs = about.shapes;
    log_info("models", "%s: its graph is from the cache", m->name);
    return true;
}

void kept_graph_store(const model *m)
{
    kept_graph *k = m->kept;
    if (k == NULL || !k->is_wanted)
        return;
    k->is_wanted = false;
    bool has_files = m->graph != NULL && m->graph->release != NULL;
    if (m->graph == NULL || has_files || m->on_device.exported != NULL ||
        strcmp(m->platform, "onnx") != 0)
        return;
    stored_graph_about about = {.flags = m->on_device.is_whole ? IS_WHOLE : 0,
                                .note = m->whole_note,
                                .shapes = m->whole_inputs,
                                .shape_count = m->whole_inputs ? m->graph->input_count : 0};
    status failure = STATUS_OK;
    if (mkdir(k->folder, 0777) != 0 && errno != EEXIST)
        failure = status_fail(STATUS_IO, "%s: %s", k->folder, strerror(errno));
    if (!failure)
        failure = stored_graph_write(k->path, k->key, m->graph, &about, k->bytes_max);
    if (failure == STATUS_UNSUPPORTED)
        log_debug("models", "%s: its graph is not cached: %s", m->name, status_message());
    else if (failure)
        log_warning("models", "%s: its graph is not cached: %s", m->name, status_message());
}
