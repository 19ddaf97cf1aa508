/* Every model of the shared set on a PJRT plugin, in a real device host: compile at each case's
 * shape, run on every device, compare with the expected outputs. usage: pjrt_golden PLUGIN
 * SHARED_MODELS HOST_PROGRAM [CACHE]. Ends with 'N passed, N failed, N skipped'. */

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "devices/cpu/evaluate.h"
#include "devices/pjrt/device.h"
#include "graph/import.h"
#include "graph/specialise/specialise.h"

#define TENSORS_MAX 16

static int passed, failed, skipped;

static void fill(tensor *t, json_t *data)
{
    size_t count = json_array_size(data);
    for (size_t i = 0; i < count; i++)
        tensor_set_number(t, (int64_t)i, json_number_value(json_array_get(data, i)));
}

static bool read_tensor(json_t *entry, arena *a, tensor *out)
{
    int64_t dims[TENSOR_RANK_MAX];
    json_t *shape = json_object_get(entry, "shape");
    const char *type_name = json_string_value(json_object_get(entry, "datatype"));
    dtype type;
    int rank = (int)json_array_size(shape);
    for (int i = 0; i < rank; i++)
        dims[i] = json_integer_value(json_array_get(shape, (size_t)i));
    if (type_name == NULL || !dtype_from_kserve_name(type_name, strlen(type_name), &type) ||
        tensor_allocate(out, a, type, rank, dims))
        return false;
    fill(out, json_object_get(entry, "data"));
    return true;
}

static json_t *find(json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(list, i), "name")), name) == 0)
            return json_array_get(list, i);
    return NULL;
}

/* Largest difference from the expected outputs, or NAN when shapes differ. */
static double difference(json_t *response, const graph *g, const tensor *outputs, arena *a)
{
    double largest = 0;
    for (int i = 0; i < g->output_count; i++) {
        json_t *entry = find(json_object_get(response, "outputs"), g->values[g->outputs[i]].name);
        tensor expected;
        if (entry == NULL)
            continue;
        if (!read_tensor(entry, a, &expected) || !tensor_same_shape(&expected, &outputs[i]))
            return NAN;
        for (int64_t k = 0; k < tensor_count(&expected); k++) {
            double x = tensor_get_number(&outputs[i], k);
            largest =
                fmax(largest, isfinite(x) ? fabs(tensor_get_number(&expected, k) - x) : INFINITY);
        }
    }
    return largest;
}

typedef struct models_case {
    const char *name, *folder;
    int number;
    double tolerance;
} models_case;

static status run_case(device *const *devices, int device_count, const graph *g,
                       const models_case *c, json_t *request, json_t *response, double *worst)
{
    arena a = {0};
    tensor inputs[TENSORS_MAX], outputs[TENSORS_MAX];
    device_bucket bucket = {1, 0};
    status s = STATUS_OK;
    for (int i = 0; i < g->input_count; i++) {
        json_t *entry = find(json_object_get(request, "inputs"), g->values[g->inputs[i]].name);
        if (entry == NULL || !read_tensor(entry, &a, &inputs[i])) {
            s = status_fail(STATUS_NOT_FOUND, "no input %s", g->values[g->inputs[i]].name);
            goto done;
        }
        const graph_shape *shape = &g->values[g->inputs[i]].shape;
        for (int d = 0; d < shape->rank; d++) {
            if (shape->dims[d].batch)
                bucket.batch = inputs[i].dims[d];
            if (shape->dims[d].sequence)
                bucket.sequence = inputs[i].dims[d];
        }
    }
    for (int i = 0; i < g->output_count; i++) {
        const graph_shape *shape = &g->values[g->outputs[i]].shape;
        int64_t dims[TENSOR_RANK_MAX];
        for (int d = 0; d < shape->rank; d++)
            dims[d] = graph_dim_at(shape->dims[d], bucket.batch, bucket.sequence);
        s = tensor_allocate(&outputs[i], &a, g->values[g->outputs[i]].dtype, shape->rank, dims);
        if (s)
            goto done;
    }
    device_model model = {
        .graph = g, .name = c->name, .model_key = (uint64_t)(uintptr_t)g, .mask_input = -1};
    for (int d = 0; s == STATUS_OK && d < device_count; d++) {
        device_program *program;
        s = devices[d]->interface->compile(devices[d], &model, bucket, &program);
        if (s)
            break;
        device_batch batch = {.inputs = inputs, .outputs = outputs};
        s = devices[d]->interface->execute(devices[d], program, 0, &batch);
        devices[d]->interface->release(devices[d], program);
        if (s == STATUS_OK) {
            double found = difference(response, g, outputs, &a);
            *worst = found > *worst || isnan(found) ? found : *worst;
        }
    }
done:
    arena_dispose(&a);
    return s;
}

static json_t *load(const models_case *c, const char *what)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/kserve/%s.case%d.%s.json", c->folder, c->name, c->number, what);
    return json_load_file(path, 0, NULL);
}

static void run_model(device *const *devices, int device_count, json_t *entry, const char *folder)
{
    models_case c = {.name = json_string_value(json_object_get(entry, "name")),
                     .folder = folder,
                     .tolerance = json_number_value(json_object_get(entry, "tolerance_abs"))};
    char path[4096];
    snprintf(path, sizeof path, "%s/models/%s.onnx", folder, c.name);
    graph *g;
    status s = graph_import_onnx(path, NULL, &g);
    if (s == STATUS_OK)
        s = graph_infer_symbolic(g, NULL, cpu_evaluate_node);
    if (s) {
        printf("FAIL %s: %s\n", c.name, status_message());
        failed++;
        return;
    }
    double worst = 0, step = json_number_value(json_object_get(entry, "output_quant_step"));
    uint64_t start_ns = clock_now_ns();
    for (;; c.number++) {
        json_t *request = load(&c, "request"), *response = load(&c, "response");
        if (request != NULL && response != NULL)
            s = run_case(devices, device_count, g, &c, request, response, &worst);
        json_decref(response);
        bool is_over = request == NULL;
        json_decref(request);
        if (is_over || s)
            break;
    }
    /* Derived models differ by whole quantisation steps from any other correct implementation
     * (shared/models/README.md). */
    double distance = json_number_value(json_object_get(entry, "quant_vs_fp32_maxabs"));
    json_t *by_output = json_object_get(entry, "quant_vs_fp32_maxabs");
    const char *key;
    json_t *value;
    json_object_foreach(by_output, key, value) distance = fmax(distance, json_number_value(value));
    double bound = fmax(c.tolerance, fmax(3 * step, 2 * distance));
    bool is_good = s == STATUS_OK && worst <= bound;
    printf("%s %s: %d cases, largest difference %.2e (bound %.2e), %.1f s%s%s\n",
           is_good ? "ok  " : "FAIL", c.name, c.number, worst, bound,
           (double)(clock_now_ns() - start_ns) * 1e-9, s ? ": " : "", s ? status_message() : "");
    *(is_good ? &passed : &failed) += 1;
    graph_destroy(g);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: %s PLUGIN SHARED_MODELS HOST_PROGRAM [CACHE]\n", argv[0]);
        return 2;
    }
    log_configure(LOG_INFO, LOG_FORMAT_TEXT);
    device *devices[DEVICE_PJRT_DEVICES_MAX];
    int device_count = 0;
    device_pjrt_options options = {
        .plugin = argv[1], .host_program = argv[3], .cache_folder = argc > 4 ? argv[4] : NULL};
    if (device_pjrt_create(&options, 0, devices, &device_count)) {
        printf("FAIL %s\n", status_message());
        return 1;
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/manifest.json", argv[2]);
    json_error_t error;
    json_t *manifest = json_load_file(path, 0, &error), *entry;
    if (manifest == NULL) {
        printf("FAIL %s: %s\n", path, error.text);
        return 1;
    }
    size_t i;
    json_array_foreach(json_object_get(manifest, "models"), i, entry)
        run_model(devices, device_count, entry, argv[2]);
    json_decref(manifest);
    device_status described;
    devices[0]->interface->describe(devices[0], &described);
    printf("%llu compiled, %llu from the cache, %llu restarts\n",
           (unsigned long long)described.compiles, (unsigned long long)described.cache_hits,
           (unsigned long long)described.restarts);
    for (int d = 0; d < device_count; d++)
        devices[d]->interface->destroy(devices[d]);
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed != 0;
}
