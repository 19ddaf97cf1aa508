/* What an operator or a stranger with model files gives: configuration, manifests, models. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/file.h"
#include "config/print.h"
#include "devices/cpu/evaluate.h"
#include "graph/import.h"
#include "graph/safetensors.h"
#include "graph/specialise/specialise.h"
#include "models/manifest/manifest.h"
#include "tests/fuzz/fuzz.h"
#include "tests/hostile/run_onnx.h"
#include "tests/support/temporary.h"

static void check_failure(status failure)
{
    assert(failure != STATUS_INTERNAL && status_message()[0] != 0);
}

static bool has_keys(const config *c)
{
    for (int i = 0; i < c->server.tenant_count; i++)
        if (c->server.tenants[i].key != NULL)
            return true;
    return false;
}

/* What is accepted can be printed; what is printed is accepted and prints the same, unless it has
 * keys, which are masked. */
void fuzz_config(const uint8_t *data, size_t bytes)
{
    static config c; /* large */
    char *first = NULL, *second = NULL;
    size_t first_bytes = 0, second_bytes = 0;
    config_default(&c);
    status failure = config_read_text(&c, "penstock.json", (const char *)data, bytes);
    if (failure) {
        check_failure(failure);
        config_dispose(&c);
        return;
    }
    FILE *out = open_memstream(&first, &first_bytes);
    assert(config_print(&c, out) == STATUS_OK);
    fclose(out);
    bool is_masked = has_keys(&c);
    config_dispose(&c);
    if (is_masked) {
        free(first);
        return;
    }
    config_default(&c);
    failure = config_read_text(&c, "printed.json", first, first_bytes);
    assert(failure == STATUS_OK);
    out = open_memstream(&second, &second_bytes);
    assert(config_print(&c, out) == STATUS_OK);
    fclose(out);
    config_dispose(&c);
    assert(first_bytes == second_bytes && memcmp(first, second, first_bytes) == 0);
    free(first);
    free(second);
}

void fuzz_manifest(const uint8_t *data, size_t bytes)
{
    manifest m;
    status failure = manifest_read_text("model.json", (const char *)data, bytes, &m);
    if (failure)
        check_failure(failure);
    else
        manifest_dispose(&m);
}

void fuzz_onnx(const uint8_t *data, size_t bytes)
{
    status failure = run_onnx(data, bytes);
    if (failure)
        check_failure(failure);
}

/* A file with some tensors: none reaches beyond it. */
void fuzz_safetensors(const uint8_t *data, size_t bytes)
{
    safetensors file = {0};
    status failure = safetensors_open(&file, data, bytes);
    if (failure)
        check_failure(failure);
    for (int32_t i = 0; !failure && i < file.count; i++) {
        const safetensors_entry *e = &file.entries[i];
        assert(safetensors_find(&file, e->name) != NULL);
        if (!e->has_known_type)
            continue;
        const uint8_t *begin = e->value.data;
        assert(begin >= data && begin + tensor_bytes(&e->value) <= data + bytes);
    }
    safetensors_close(&file);
}

static char folder[TEMPORARY_FOLDER_BYTES];

static void remove_folder(void)
{
    temporary_remove(folder);
}

/* config.json, and after a zero byte model.safetensors; where there is none, the weights of a small
 * BERT. */
void fuzz_hugging_face(const uint8_t *data, size_t bytes)
{
    static const char weights[] =
        PENSTOCK_SOURCE_DIR "/tests/data/hugging_face/bert/model.safetensors";
    static const graph_budget budget = {.activation_bytes_max = 1 << 20,
                                        .operations_max = 10000000};
    graph *g = NULL;
    const uint8_t *end = memchr(data, 0, bytes);
    size_t config_bytes = end != NULL ? (size_t)(end - data) : bytes;
    if (folder[0] == 0) {
        temporary_make(folder);
        atexit(remove_folder);
    }
    char path[TEMPORARY_FOLDER_BYTES + 40];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    unlink(path);
    temporary_write(folder, "config.json", data, config_bytes);
    if (end != NULL)
        temporary_write(folder, "model.safetensors", end + 1, bytes - config_bytes - 1);
    else
        assert(symlink(weights, path) == 0);
    status failure = graph_import_hugging_face(folder, NULL, NULL, &g);
    if (failure == STATUS_OK)
        failure = graph_infer_symbolic(g, &budget, cpu_evaluate_node);
    if (failure)
        check_failure(failure);
    graph_destroy(g);
}
