/* Specialises every model of ../shared/models at the shapes of the manifest's cases and compares
 * the shapes of its outputs; then times forty buckets of each. Prints the suite's one line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/clock.h"
#include "devices/cpu/evaluate.h"
#include "graph/import.h"
#include "graph/specialise/specialise.h"

static int passed, failed;

static void check(bool ok, const char *model, const char *what)
{
    if (ok) {
        passed++;
        return;
    }
    failed++;
    printf("%s: %s: %s\n", model, what, status_message());
}

static void read_shape(const json_t *shape, tensor *t)
{
    t->rank = (int)json_array_size(shape);
    for (int i = 0; i < t->rank && i < TENSOR_RANK_MAX; i++)
        t->dims[i] = json_integer_value(json_array_get(shape, (size_t)i));
}

static bool is_node_free_of_shapes(const graph *g)
{
    for (int32_t n = 0; n < g->node_count; n++)
        if (g->nodes[n].op == GRAPH_OP_SHAPE || g->nodes[n].op == GRAPH_OP_RANGE ||
            g->nodes[n].op == GRAPH_OP_IDENTITY)
            return false;
    return true;
}

static void check_case(const char *name, const graph *g, const json_t *one)
{
    tensor inputs[16] = {0};
    for (int i = 0; i < g->input_count && i < 16; i++) {
        const graph_value *v = &g->values[g->inputs[i]];
        const json_t *shape = json_object_get(json_object_get(one, "shapes"), v->name);
        inputs[i].dtype = v->dtype;
        check(shape != NULL, name, "an input that the manifest does not know");
        read_shape(shape, &inputs[i]);
    }
    graph *made = NULL;
    status s = graph_specialise(g, &(graph_binding){.inputs = inputs}, cpu_evaluate_node, &made);
    check(s == STATUS_OK, name, json_string_value(json_object_get(one, "label")));
    if (s)
        return;
    check(is_node_free_of_shapes(made), name, "shape arithmetic remains");
    for (int i = 0; i < made->output_count; i++) {
        const graph_value *v = &made->values[made->outputs[i]];
        const json_t *shape = json_object_get(json_object_get(one, "out_shapes"), v->name);
        tensor expected = {0};
        read_shape(shape, &expected);
        bool same = shape != NULL && expected.rank == v->shape.rank;
        for (int d = 0; same && d < expected.rank; d++)
            same = expected.dims[d] == v->shape.dims[d].constant;
        check(same, name, v->name);
    }
    graph_destroy(made);
}

static void time_buckets(const char *name, const graph *g)
{
    uint64_t start = clock_now_ns();
    int32_t nodes = 0;
    for (int k = 1; k <= 40; k++) {
        tensor inputs[16] = {0};
        graph *made = NULL;
        if (graph_bind(g, k, 3 * k, inputs) ||
            graph_specialise(g, &(graph_binding){.inputs = inputs}, cpu_evaluate_node, &made))
            return;
        nodes = made->node_count;
        graph_destroy(made);
    }
    printf("%s: %d nodes to %d, 40 buckets in %.1f ms\n", name, g->node_count, nodes,
           (double)(clock_now_ns() - start) / 1e6);
}

static void check_model(const char *shared, const json_t *model)
{
    const char *name = json_string_value(json_object_get(model, "name"));
    char path[4096];
    snprintf(path, sizeof path, "%s/models/%s", shared,
             json_string_value(json_object_get(model, "file")));
    graph *g = NULL;
    status s = graph_import_onnx(path, NULL, &g);
    check(s == STATUS_OK, name, "import");
    if (s)
        return;
    s = graph_infer_symbolic(g, NULL, cpu_evaluate_node);
    check(s == STATUS_OK, name, "symbolic shapes");
    for (int i = 0; i < g->output_count; i++) {
        const graph_value *v = &g->values[g->outputs[i]];
        printf("%s: %s [", name, v->name);
        char text[64];
        for (int d = 0; d < v->shape.rank; d++)
            printf("%s%s", d ? "," : "", graph_dim_text(text, v->shape.dims[d]));
        printf("]\n");
        check(v->shape.rank > 0 && graph_dim_equal(v->shape.dims[0], (graph_dim){.batch = 1}), name,
              "the output's first dim is not the batch");
    }
    size_t k;
    json_t *one;
    json_array_foreach(json_object_get(model, "cases"), k, one)
    {
        check_case(name, g, one);
    }
    time_buckets(name, g);
    graph_destroy(g);
}

int main(void)
{
    const char *shared = getenv("PENSTOCK_SHARED");
    if (shared == NULL)
        shared = PENSTOCK_SHARED_DEFAULT;
    char path[4096];
    snprintf(path, sizeof path, "%s/models/manifest.json", shared);
    if (access(path, R_OK) != 0) {
        printf("%s is absent\n0 passed, 0 failed, 1 skipped\n", path);
        return 0;
    }
    json_t *manifest = json_load_file(path, 0, NULL);
    size_t k;
    json_t *model;
    json_array_foreach(json_object_get(manifest, "models"), k, model)
    {
        check_model(shared, model);
    }
    json_decref(manifest);
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0 || passed == 0;
}
