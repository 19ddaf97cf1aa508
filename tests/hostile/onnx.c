#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/io/file_reader.h"
#include "damage_onnx.h"
#include "devices/cpu/evaluate.h"
#include "devices/cpu/plan.h"
#include "graph/encoder/encoder.h"
#include "graph/import.h"
#include "graph/specialise/specialise.h"

/* Models of ../shared and of tests/data with one to three changes: each is rejected with a message,
 * or runs to the end, from the file through shapes and folding to a plan and its results.
 * HOSTILE_ROUNDS sets the number of rounds; with ASan this is a fuzzer without coverage. */

#define ROUNDS 60                     /* for each model */
#define VALUES_BYTES_MAX (8L << 20)   /* a model that grew beyond this is rejected */
#define RESIDENT_KIB_MAX (512L << 10) /* that all damaged models of a folder take at most */
#define MESSAGE_OF_NOTHING "status_message() says nothing of a failure"

static long rounds(void)
{
    const char *more = getenv("HOSTILE_ROUNDS");
    return more != NULL ? atol(more) : ROUNDS;
}

/* What a damaged model may cost: nothing is folded or run beyond it. */
static const graph_budget budget = {.activation_bytes_max = VALUES_BYTES_MAX,
                                    .operations_max = 100000000};

/* Small numbers: token ids as well as pixels. */
static void fill(tensor *t)
{
    for (int64_t i = 0; i < tensor_count(t); i++) {
        switch (t->dtype) {
        case DTYPE_F32:
            ((float *)t->data)[i] = (float)(i % 7) / 4;
            break;
        case DTYPE_I64:
            ((int64_t *)t->data)[i] = i % 3;
            break;
        case DTYPE_I32:
            ((int32_t *)t->data)[i] = (int32_t)(i % 3);
            break;
        default:
            return; /* zeros */
        }
    }
}

static status make_tensors(const graph *g, const graph_value_index *values, int count,
                           arena *memory, tensor **out)
{
    tensor *made = arena_allocate_zeroed(memory, (size_t)count + 1, sizeof *made);
    for (int i = 0; made != NULL && i < count; i++) {
        const graph_value *v = &g->values[values[i]];
        int64_t dims[TENSOR_RANK_MAX];
        for (int d = 0; d < v->shape.rank; d++)
            dims[d] = v->shape.dims[d].constant;
        status s = tensor_allocate(&made[i], memory, v->dtype, v->shape.rank, dims);
        if (s)
            return s;
        fill(&made[i]);
    }
    *out = made;
    return made != NULL ? STATUS_OK : status_fail(STATUS_OUT_OF_MEMORY, "no memory");
}

static status run(const graph *g)
{
    const kernels *table;
    cpu_plan *plan;
    arena memory = {0};
    tensor *inputs, *outputs;
    status s = kernels_select(NULL, &table);
    if (s == STATUS_OK)
        s = cpu_plan_create(g, table, NULL, &plan);
    if (s)
        return s;
    size_t bytes = cpu_plan_workspace_bytes(plan);
    void *workspace = arena_allocate_aligned(&memory, bytes + 1, CPU_PLAN_WORKSPACE_ALIGNMENT);
    s = make_tensors(g, g->inputs, g->input_count, &memory, &inputs);
    if (s == STATUS_OK)
        s = make_tensors(g, g->outputs, g->output_count, &memory, &outputs);
    if (s == STATUS_OK)
        s = cpu_plan_run(plan, inputs, outputs, workspace, NULL);
    arena_dispose(&memory);
    cpu_plan_destroy(plan);
    return s;
}

/* Runs the model as far as it can. */
static status go(const uint8_t *data, size_t bytes)
{
    graph *g = NULL, *special = NULL;
    encoder found;
    status s = graph_import_onnx_bytes(data, bytes, NULL, NULL, &g);
    if (s)
        return s;
    s = graph_infer_symbolic(g, &budget, cpu_evaluate_node);
    if (s == STATUS_OK && encoder_recognise(g, &budget, cpu_evaluate_node, &found) == STATUS_OK)
        encoder_dispose(&found);
    tensor *inputs = calloc((size_t)g->input_count + 1, sizeof *inputs);
    if (s == STATUS_OK)
        s = graph_bind(g, 2, 5, inputs);
    if (s == STATUS_OK)
        s = graph_specialise(g, &(graph_binding){inputs, &budget}, cpu_evaluate_node, &special);
    if (s == STATUS_OK)
        s = graph_cost_check(special, &budget);
    if (s == STATUS_OK)
        s = run(special);
    free(inputs);
    graph_destroy(special);
    graph_destroy(g);
    return s;
}

static void hurt(const uint8_t *data, size_t bytes, uint64_t seed)
{
    chance c = {seed};
    Onnx__Model *model = onnx__model__unpack(NULL, bytes, data);
    cr_assert_not_null(model);
    for (uint32_t i = 0; i <= chance_below(&c, 3); i++)
        damage_onnx(model, &c);
    size_t packed_bytes = onnx__model__get_packed_size(model);
    uint8_t *packed = malloc(packed_bytes + 1);
    onnx__model__pack(model, packed);
    onnx__model__free_unpacked(model, NULL);
    if (getenv("HOSTILE_SAVE") != NULL) { /* the last file written caused the crash */
        FILE *f = fopen(getenv("HOSTILE_SAVE"), "wb");
        fwrite(packed, 1, packed_bytes, f);
        fclose(f);
    }
    status s = go(packed, packed_bytes);
    cr_assert(s == STATUS_OK || status_message()[0] != 0, MESSAGE_OF_NOTHING);
    cr_assert_neq(s, STATUS_INTERNAL, "%s", status_message());
    free(packed);
}

static long peak_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void hurt_folder(const char *folder, uint64_t seed)
{
    long before_kib = peak_kib();
    DIR *d = opendir(folder);
    if (d == NULL)
        cr_skip_test("%s is absent", folder);
    int models = 0;
    for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
        char path[800];
        void *data;
        size_t bytes;
        if (strstr(entry->d_name, ".onnx") == NULL)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        cr_assert_eq(file_reader_read_whole(path, 1 << 24, &data, &bytes), STATUS_OK);
        for (long i = 1; i <= rounds(); i++)
            hurt(data, bytes, seed + (uint64_t)i);
        free(data);
        models++;
    }
    closedir(d);
    cr_assert_gt(models, 0);
    cr_expect_lt(peak_kib() - before_kib, RESIDENT_KIB_MAX);
}

Test(hostile_onnx, models_of_the_tree)
{
    hurt_folder(PENSTOCK_SOURCE_DIR "/tests/data/golden/models", 1000);
}

Test(hostile_onnx, models_of_the_shared_set)
{
    char folder[600];
    const char *shared = getenv("PENSTOCK_SHARED");
    snprintf(folder, sizeof folder, "%s/models/models",
             shared ? shared : PENSTOCK_SOURCE_DIR "/../shared");
    hurt_folder(folder, 500000);
}
