/* Encoders without padding: golden results, equal bits however a batch is split and shared, ids out
 * of range, padding that a client sends, packed weights on disk. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/file_reader.h"
#include "devices/cpu/evaluate.h"
#include "devices/device.h"
#include "graph/import.h"
#include "graph/safetensors.h"
#include "graph/specialise/specialise.h"
#include "tests/support/npz.h"
#include "tests/support/temporary.h"

#define INPUTS_MAX 4
#define ROWS_MAX 24

static const char *shared_folder(void)
{
    const char *folder = getenv("PENSTOCK_SHARED");
    return folder ? folder : PENSTOCK_SHARED;
}

static bool is_there(const char *path)
{
    return access(path, R_OK) == 0;
}

/* A model of the shared set, or, with a slash in its name, a Hugging Face folder of tests/data. */
static graph *import(const char *name)
{
    char path[4096];
    graph *g = NULL;
    if (strchr(name, '/') != NULL) {
        snprintf(path, sizeof path, PENSTOCK_SOURCE_DIR "/tests/data/%s", name);
        cr_assert_eq(graph_import_hugging_face(path, NULL, NULL, &g), STATUS_OK, "%s",
                     status_message());
        cr_assert_eq(graph_infer_symbolic(g, NULL, cpu_evaluate_node), STATUS_OK, "%s",
                     status_message());
        return g;
    }
    snprintf(path, sizeof path, "%s/models/models/%s.onnx", shared_folder(), name);
    if (!is_there(path))
        return NULL;
    cr_assert_eq(graph_import_onnx(path, NULL, &g), STATUS_OK, "%s", status_message());
    cr_assert_eq(graph_infer_symbolic(g, NULL, cpu_evaluate_node), STATUS_OK, "%s",
                 status_message());
    return g;
}

static device *create(int threads, const char *level, const char *cache)
{
    device *d = NULL;
    device_cpu_options options = {.threads = threads, .level = level, .cache_folder = cache};
    cr_assert_eq(device_cpu_create_with(&options, &d), STATUS_OK, "%s", status_message());
    return d;
}

static device_program *compile(device *d, const graph *g, device_precision precision,
                               int64_t length)
{
    device_program *p = NULL;
    device_model model = {
        .graph = g, .name = "encoder", .model_key = 77, .precision = precision, .mask_input = 1};
    cr_assert_eq(d->interface->compile(d, &model, (device_bucket){64, length}, &p), STATUS_OK, "%s",
                 status_message());
    return p;
}

static void run_golden_case(const char *name, const graph *g, device *d, device_program *p,
                            const npz *golden, int number, double tolerance)
{
    arena memory = {0};
    tensor inputs[INPUTS_MAX], outputs[2];
    for (int i = 0; i < g->input_count; i++) {
        const tensor *t = npz_find(golden, "case%d/in/%s", number, g->values[g->inputs[i]].name);
        cr_assert(t != NULL);
        inputs[i] = *t;
    }
    for (int i = 0; i < g->output_count; i++) {
        const tensor *t = npz_find(golden, "case%d/out/%s", number, g->values[g->outputs[i]].name);
        cr_assert(t != NULL);
        cr_assert_eq(tensor_allocate(&outputs[i], &memory, DTYPE_F32, t->rank, t->dims), 0);
    }
    device_segment segment = {inputs[0].dims[0], inputs[0].dims[1], inputs, outputs};
    device_batch batch = {.segments = &segment, .segment_count = 1};
    cr_assert_eq(d->interface->execute(d, p, 0, &batch), STATUS_OK, "%s", status_message());
    for (int i = 0; i < g->output_count; i++) {
        const tensor *t = npz_find(golden, "case%d/out/%s", number, g->values[g->outputs[i]].name);
        double worst = 0;
        for (int64_t k = 0; k < tensor_count(t); k++) {
            double x = tensor_get_number(&outputs[i], k);
            worst = fmax(worst, isfinite(x) ? fabs(tensor_get_number(t, k) - x) : INFINITY);
        }
        cr_expect(worst <= tolerance, "%s case %d: differs by %g of %g", name, number, worst,
                  tolerance);
    }
    arena_dispose(&memory);
}

static void run_golden(const char *level)
{
    static const char *const names[] = {"bert_tiny_legacy", "bert_tiny_dynamo",
                                        "bert_tiny_cls_legacy", "distilbert_tiny_legacy",
                                        "roberta_tiny_legacy"};
    int found = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[4096];
        npz golden;
        graph *g = import(names[i]);
        if (!g)
            continue;
        device *d = create(2, level, NULL);
        device_program *p = compile(d, g, DEVICE_FP32, 128);
        cr_expect_eq(p->layout, DEVICE_RAGGED, "%s is not recognised", names[i]);
        snprintf(path, sizeof path, "%s/models/goldens/%s.npz", shared_folder(), names[i]);
        cr_assert_eq(npz_open(&golden, path), STATUS_OK);
        for (int c = 0; p->layout == DEVICE_RAGGED &&
                        npz_find(&golden, "case%d/in/%s", c, g->values[g->inputs[0]].name);
             c++, found++)
            run_golden_case(names[i], g, d, p, &golden, c, 1e-4);
        npz_close(&golden);
        d->interface->release(d, p);
        d->interface->destroy(d);
        graph_destroy(g);
    }
    if (found == 0)
        cr_skip_test("%s/models is absent", shared_folder());
}

static tensor find_aligned(const safetensors *file, const char *kind, const char *name,
                           arena *memory)
{
    char full[200];
    tensor copy;
    snprintf(full, sizeof full, "%s.%s", kind, name);
    const safetensors_entry *e = safetensors_find(file, full);
    cr_assert_not_null(e, "expected.safetensors lacks %s", full);
    cr_assert_eq(tensor_allocate(&copy, memory, e->value.dtype, e->value.rank, e->value.dims), 0);
    memcpy(copy.data, e->value.data, tensor_bytes(&copy));
    return copy;
}

/* PyTorch's results, but where the mask is 0. */
static void check_folder(const char *short_name, const char *level)
{
    char path[4096];
    void *data;
    size_t bytes;
    safetensors file;
    arena memory = {0};
    char name[200];
    snprintf(name, sizeof name, "hugging_face/%s", short_name);
    graph *g = import(name);
    device *d = create(2, level, NULL);
    int64_t longest = g->sequence_max < 64 ? g->sequence_max : 64;
    device_program *p = compile(d, g, DEVICE_FP32, longest);
    cr_assert_eq(p->layout, DEVICE_RAGGED, "%s is not recognised", name);
    snprintf(path, sizeof path, PENSTOCK_SOURCE_DIR "/tests/data/%s/expected.safetensors", name);
    cr_assert_eq(file_reader_read_whole(path, 1 << 20, &data, &bytes), STATUS_OK);
    cr_assert_eq(safetensors_open(&file, data, bytes), STATUS_OK);
    tensor inputs[INPUTS_MAX], outputs[2];
    for (int i = 0; i < g->input_count; i++)
        inputs[i] = find_aligned(&file, "in", g->values[g->inputs[i]].name, &memory);
    for (int i = 0; i < g->output_count; i++) {
        outputs[i] = find_aligned(&file, "out", g->values[g->outputs[i]].name, &memory);
        memset(outputs[i].data, 0, tensor_bytes(&outputs[i]));
    }
    device_segment segment = {inputs[0].dims[0], inputs[0].dims[1], inputs, outputs};
    device_batch batch = {.segments = &segment, .segment_count = 1};
    cr_assert_eq(d->interface->execute(d, p, 0, &batch), STATUS_OK, "%s", status_message());
    for (int i = 0; i < g->output_count; i++) {
        tensor want = find_aligned(&file, "out", g->values[g->outputs[i]].name, &memory);
        int64_t length = inputs[0].dims[1], count = tensor_count(&want);
        bool is_by_position = want.rank >= 2 && want.dims[1] == length;
        int64_t each = is_by_position ? count / (want.dims[0] * length) : 0;
        double error = 0, largest = 1;
        for (int64_t k = 0; k < count; k++) {
            double x = tensor_get_number(&outputs[i], k), y = tensor_get_number(&want, k);
            if (each != 0 && tensor_get_integer(&inputs[1], k / each) == 0)
                continue;
            largest = fmax(largest, fabs(y));
            error = fmax(error, isfinite(x) ? fabs(x - y) : INFINITY);
        }
        cr_expect(error <= 1e-5 * largest, "%s: output %d is off by %g of %g", name, i, error,
                  largest);
    }
    safetensors_close(&file);
    free(data);
    arena_dispose(&memory);
    d->interface->release(d, p);
    d->interface->destroy(d);
    graph_destroy(g);
}

Test(cpu_encoder, hugging_face_folders_match_pytorch)
{
    check_folder("bert_answers", NULL);    /* columns of a dense layer */
    check_folder("electra_classes", NULL); /* projected embeddings */
    check_folder("mpnet", NULL);           /* relative bias */
}

/* Everything else that tests/data/make_encoders.py makes, at every level of the table. */
static const char *const encoders[] = {
    "chain_prompt",
    "chain_all_poolings",
    "chain_last_dense",
    "chain_dense_norm",
    "chain_norm_first",
    "modernbert",
    "modernbert_bias",
    "modernbert_classes",
    "qwen3",
    "qwen3_classes",
    "qwen2_window",
    "mistral",
    "llama",
    "nomic_bert",
    "nomic_bert_own",
    "gte",
    "gte_new",
    "jina_bert",
    "jina_bert_relu",
    "deberta_v3",
    "deberta_v2",
    "deberta_classes",
    "albert",
    "albert_groups",
    "albert_classes",
    "qwen3_sharded",
    "modernbert_bf16_sharded",
};

#define ENCODERS (sizeof encoders / sizeof encoders[0])

Test(cpu_encoder, newer_architectures_match_pytorch)
{
    static const char *const levels[] = {NULL, "avx2", "scalar"};
    for (size_t i = 0; i < ENCODERS; i++)
        for (size_t l = 0; l < 3; l++)
            check_folder(encoders[i], levels[l]);
}

Test(cpu_encoder, golden_results_without_padding)
{
    run_golden(NULL);
}

Test(cpu_encoder, golden_results_without_padding_avx2)
{
    run_golden("avx2");
}

Test(cpu_encoder, golden_results_without_padding_scalar)
{
    run_golden("scalar");
}

/* Rows of many lengths, one segment each. */
typedef struct rows {
    arena memory;
    int count;
    device_segment segments[ROWS_MAX];
    tensor inputs[ROWS_MAX][INPUTS_MAX], outputs[ROWS_MAX][2];
} rows;

static void make_rows(rows *r, const graph *g, int count, int64_t length_max, int64_t vocabulary)
{
    memset(r, 0, sizeof *r);
    r->count = count;
    uint32_t seed = 5;
    for (int i = 0; i < count; i++) {
        int64_t length = 1 + (i * 7 + i * i) % length_max;
        for (int k = 0; k < g->input_count; k++) {
            cr_assert_eq(
                tensor_allocate(&r->inputs[i][k], &r->memory, DTYPE_I64, 2, (int64_t[]){1, length}),
                0);
            int64_t *data = r->inputs[i][k].data;
            for (int64_t p = 0; p < length; p++) {
                seed = seed * 1664525u + 1013904223u;
                data[p] = k == 0 ? 3 + (int64_t)(seed >> 8) % (vocabulary - 3) : k == 1;
            }
        }
        for (int o = 0; o < g->output_count; o++) {
            const graph_shape *s = &g->values[g->outputs[o]].shape;
            int64_t dims[TENSOR_RANK_MAX];
            for (int k = 0; k < s->rank; k++)
                dims[k] = graph_dim_at(s->dims[k], 1, length);
            cr_assert_eq(tensor_allocate(&r->outputs[i][o], &r->memory, DTYPE_F32, s->rank, dims),
                         0);
        }
        r->segments[i] = (device_segment){1, length, r->inputs[i], r->outputs[i]};
    }
}

static void check_bits(const char *name, device_precision precision, int64_t vocabulary)
{
    graph *g = import(name);
    if (!g)
        cr_skip_test("%s is absent", name);
    static rows together, alone;
    make_rows(&together, g, ROWS_MAX, 16, vocabulary);
    make_rows(&alone, g, ROWS_MAX, 16, vocabulary);
    for (int threads = 1; threads <= 4; threads++) {
        device *d = create(threads, NULL, NULL);
        device_program *p = compile(d, g, precision, 16);
        cr_assert_eq(p->layout, DEVICE_RAGGED);
        device_batch batch = {.segments = together.segments, .segment_count = together.count};
        cr_assert_eq(d->interface->execute(d, p, threads - 1, &batch), STATUS_OK, "%s",
                     status_message());
        for (int i = 0; i < alone.count; i++) {
            device_batch one = {.segments = &alone.segments[i], .segment_count = 1};
            if (threads == 1) /* the others are compared with these results */
                cr_assert_eq(d->interface->execute(d, p, 0, &one), STATUS_OK);
            for (int o = 0; o < g->output_count; o++)
                cr_expect(memcmp(alone.outputs[i][o].data, together.outputs[i][o].data,
                                 tensor_bytes(&alone.outputs[i][o])) == 0,
                          "%s: row %d of %d threads has other bits alone", name, i, threads);
        }
        /* And alone, shared by all cores. */
        for (int i = 0; i < together.count; i++) {
            device_batch one = {.segments = &together.segments[i], .segment_count = 1};
            cr_assert_eq(d->interface->execute(d, p, 0, &one), STATUS_OK);
            for (int o = 0; o < g->output_count; o++)
                cr_expect(memcmp(alone.outputs[i][o].data, together.outputs[i][o].data,
                                 tensor_bytes(&alone.outputs[i][o])) == 0,
                          "%s: row %d shared by %d threads has other bits", name, i, threads);
        }
        d->interface->release(d, p);
        d->interface->destroy(d);
    }
    arena_dispose(&together.memory);
    arena_dispose(&alone.memory);
    graph_destroy(g);
}

Test(cpu_encoder, the_same_bits_alone_batched_and_shared_fp32)
{
    check_bits("bert_tiny_legacy", DEVICE_FP32, 90);
    check_bits("hugging_face/electra_classes", DEVICE_FP32, 24);
}

Test(cpu_encoder, the_same_bits_alone_batched_and_shared_bf16)
{
    check_bits("bert_tiny_cls_legacy", DEVICE_BF16, 90);
}

Test(cpu_encoder, the_same_bits_alone_batched_and_shared_int8)
{
    check_bits("bert_tiny_legacy", DEVICE_INT8, 90);
    check_bits("roberta_tiny_legacy", DEVICE_INT8, 90);
    check_bits("hugging_face/electra_classes", DEVICE_INT8, 24);
}

Test(cpu_encoder, newer_architectures_have_the_same_bits_alone_and_batched)
{
    static const device_precision precisions[] = {DEVICE_FP32, DEVICE_BF16, DEVICE_INT8};
    for (size_t i = 0; i < ENCODERS; i++)
        for (size_t p = 0; p < 3; p++) {
            char name[200];
            snprintf(name, sizeof name, "hugging_face/%s", encoders[i]);
            check_bits(name, precisions[p], 24);
        }
}

Test(cpu_encoder, an_id_out_of_range_is_named)
{
    graph *g = import("bert_tiny_legacy");
    if (!g)
        cr_skip_test("bert_tiny_legacy is absent");
    static rows r;
    make_rows(&r, g, 3, 16, 90);
    device *d = create(2, NULL, NULL);
    device_program *p = compile(d, g, DEVICE_INT8, 16);
    device_batch batch = {.segments = r.segments, .segment_count = 3};
    int64_t *ids = r.inputs[1][0].data;
    ids[r.segments[1].length - 1] = 12345678;
    cr_expect_eq(d->interface->execute(d, p, 0, &batch), STATUS_INVALID_ARGUMENT);
    cr_expect(strstr(status_message(), "input_ids") && strstr(status_message(), "12345678"), "%s",
              status_message());
    ids[r.segments[1].length - 1] = -1;
    cr_expect_eq(d->interface->execute(d, p, 0, &batch), STATUS_INVALID_ARGUMENT);
    ids[r.segments[1].length - 1] = 5;
    cr_expect_eq(d->interface->execute(d, p, 0, &batch), STATUS_OK);
    d->interface->release(d, p);
    d->interface->destroy(d);
    arena_dispose(&r.memory);
    graph_destroy(g);
}

/* Exports without dynamic axes have no bucket of a length: they run as plans. */
Test(cpu_encoder, rows_of_a_fixed_length_are_not_ragged)
{
    graph *g = import("bert_tiny_legacy");
    if (!g)
        cr_skip_test("bert_tiny_legacy is absent");
    for (int i = 0; i < g->input_count; i++)
        g->values[g->inputs[i]].shape.dims[1] = (graph_dim){.constant = 16};
    cr_assert_eq(graph_infer_symbolic(g, NULL, cpu_evaluate_node), STATUS_OK, "%s",
                 status_message());
    device *d = create(1, NULL, NULL);
    device_program *p = compile(d, g, DEVICE_FP32, 0);
    cr_expect_neq(p->layout, DEVICE_RAGGED);
    d->interface->release(d, p);
    d->interface->destroy(d);
    graph_destroy(g);
}

/* Pads every row to 16 with mask 0: pooled results keep their bits. */
Test(cpu_encoder, padding_by_the_client_changes_nothing)
{
    graph *g = import("bert_tiny_cls_legacy");
    if (!g)
        cr_skip_test("bert_tiny_cls_legacy is absent");
    static rows r, padded;
    make_rows(&r, g, 9, 13, 90);
    make_rows(&padded, g, 9, 1, 90);
    for (int i = 0; i < 9; i++) {
        for (int k = 0; k < g->input_count; k++) {
            cr_assert_eq(tensor_allocate(&padded.inputs[i][k], &padded.memory, DTYPE_I64, 2,
                                         (int64_t[]){1, 16}),
                         0);
            memcpy(padded.inputs[i][k].data, r.inputs[i][k].data, tensor_bytes(&r.inputs[i][k]));
        }
        padded.segments[i].length = 16;
    }
    device *d = create(1, NULL, NULL);
    device_program *p = compile(d, g, DEVICE_INT8, 16);
    device_batch batch = {.segments = r.segments, .segment_count = 9};
    device_batch other = {.segments = padded.segments, .segment_count = 9};
    cr_assert_eq(d->interface->execute(d, p, 0, &batch), STATUS_OK, "%s", status_message());
    cr_assert_eq(d->interface->execute(d, p, 0, &other), STATUS_OK, "%s", status_message());
    for (int i = 0; i < 9; i++)
        cr_expect(memcmp(r.outputs[i][0].data, padded.outputs[i][0].data,
                         tensor_bytes(&r.outputs[i][0])) == 0,
                  "row %d", i);
    d->interface->release(d, p);
    d->interface->destroy(d);
    arena_dispose(&r.memory);
    arena_dispose(&padded.memory);
    graph_destroy(g);
}

/* The one file in the folder. */
static void find_file(const char *folder, char path[4096])
{
    DIR *d = opendir(folder);
    cr_assert(d != NULL);
    int count = 0;
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') {
            snprintf(path, 4096, "%s/%s", folder, e->d_name);
            count++;
        }
    closedir(d);
    cr_assert_eq(count, 1, "%d files in the cache", count);
}

/* The ALBERT of tests/data with so many layers, all of the same weights. */
static graph *import_albert(int layers)
{
    static const char from[] = PENSTOCK_SOURCE_DIR "/tests/data/hugging_face/albert";
    char folder[TEMPORARY_FOLDER_BYTES], path[4096];
    graph *g = NULL;
    temporary_make(folder);
    snprintf(path, sizeof path, "%s/config.json", from);
    json_t *config = json_load_file(path, 0, NULL);
    json_object_set_new(config, "num_hidden_layers", json_integer(layers));
    snprintf(path, sizeof path, "%s/config.json", folder);
    cr_assert_eq(json_dump_file(config, path, 0), 0);
    json_decref(config);
    char target[4096];
    snprintf(target, sizeof target, "%s/model.safetensors", from);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    cr_assert_eq(symlink(target, path), 0);
    cr_assert_eq(graph_import_hugging_face(folder, NULL, NULL, &g), STATUS_OK, "%s",
                 status_message());
    temporary_remove(folder);
    cr_assert_eq(graph_infer_symbolic(g, NULL, cpu_evaluate_node), STATUS_OK, "%s",
                 status_message());
    return g;
}

/* Of the file that keeps the packed weights. */
static int64_t packed_bytes(const graph *g, device_precision precision)
{
    char folder[TEMPORARY_FOLDER_BYTES], path[4096];
    struct stat facts;
    temporary_make(folder);
    device *d = create(1, NULL, folder);
    device_program *p = compile(d, g, precision, 16);
    find_file(folder, path);
    cr_assert_eq(stat(path, &facts), 0);
    d->interface->release(d, p);
    d->interface->destroy(d);
    temporary_remove(folder);
    return facts.st_size;
}

Test(cpu_encoder, weights_that_layers_share_are_packed_once)
{
    graph *one = import_albert(1), *many = import_albert(40);
    for (int p = 0; p < 3; p++) {
        static const device_precision precisions[] = {DEVICE_FP32, DEVICE_BF16, DEVICE_INT8};
        int64_t of_one = packed_bytes(one, precisions[p]),
                of_many = packed_bytes(many, precisions[p]);
        cr_expect_eq(of_many, of_one, "%s: %lld bytes, of one layer %lld",
                     device_precision_names[precisions[p]], (long long)of_many, (long long)of_one);
    }
    graph_destroy(one);
    graph_destroy(many);
}

static uint64_t run_with_cache(const graph *g, const char *folder, rows *r)
{
    device *d = create(1, NULL, folder);
    device_program *p = compile(d, g, DEVICE_INT8, 16);
    device_batch batch = {.segments = r->segments, .segment_count = r->count};
    cr_assert_eq(d->interface->execute(d, p, 0, &batch), STATUS_OK, "%s", status_message());
    device_status facts;
    d->interface->describe(d, &facts);
    d->interface->release(d, p);
    d->interface->destroy(d);
    return facts.cache_hits;
}

Test(cpu_encoder, packed_weights_come_back_from_disk_unless_damaged)
{
    graph *g = import("bert_tiny_legacy");
    if (!g)
        cr_skip_test("bert_tiny_legacy is absent");
    char folder[TEMPORARY_FOLDER_BYTES], path[4096];
    temporary_make(folder);
    static rows first, again;
    make_rows(&first, g, 9, 16, 90);
    make_rows(&again, g, 9, 16, 90);
    cr_expect_eq(run_with_cache(g, folder, &first), 0);
    cr_expect_eq(run_with_cache(g, folder, &again), 1);
    for (int i = 0; i < 9; i++)
        cr_expect(memcmp(first.outputs[i][0].data, again.outputs[i][0].data,
                         tensor_bytes(&first.outputs[i][0])) == 0);
    find_file(folder, path);
    FILE *f = fopen(path, "r+b");
    cr_assert(f != NULL);
    cr_assert_eq(fseek(f, -100, SEEK_END), 0);
    int byte = fgetc(f);
    cr_assert_eq(fseek(f, -100, SEEK_END), 0);
    fputc(byte ^ 1, f);
    fclose(f);
    cr_expect_eq(run_with_cache(g, folder, &again), 0, "a damaged file was believed");
    cr_expect_eq(run_with_cache(g, folder, &again), 1);
    cr_assert_eq(truncate(path, 5000), 0);
    cr_expect_eq(run_with_cache(g, folder, &again), 0, "a cut file was believed");
    temporary_remove(folder);
    arena_dispose(&first.memory);
    arena_dispose(&again.memory);
    graph_destroy(g);
}
