/* Every test model, imported, specialised, planned and run on each golden case. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices/cpu/evaluate.h"
#include "devices/cpu/plan/plan.h"
#include "graph/import.h"
#include "tests/support/npz.h"

#define CASES_MAX 16

static const char *shared_folder(void)
{
    const char *folder = getenv("PENSTOCK_SHARED");
    return folder ? folder : PENSTOCK_SHARED;
}

static void fail_status(const char *what)
{
    cr_assert_fail("%s: %s", what, status_message());
}

static double largest_difference(const tensor *a, const tensor *b)
{
    cr_assert(tensor_same_shape(a, b));
    double worst = 0;
    for (int64_t i = 0; i < tensor_count(a); i++) {
        double d = fabs(tensor_get_number(a, i) - tensor_get_number(b, i));
        worst = d <= worst ? worst : isnan(d) ? INFINITY : d;
    }
    return worst;
}

/* Runs one case; returns the largest difference to `out`, or to `out_noopt` where that is nearer.
 */
static double run_case(const char *name, const graph *g, const npz *golden, int number,
                       const kernels *table)
{
    tensor inputs[8], outputs[8];
    arena memory = {0};
    for (int i = 0; i < g->input_count; i++) {
        const tensor *t = npz_find(golden, "case%d/in/%s", number, g->values[g->inputs[i]].name);
        cr_assert(t != NULL, "%s: no golden input %s", name, g->values[g->inputs[i]].name);
        inputs[i] = *t;
    }
    tensor shapes[8];
    memcpy(shapes, inputs, sizeof shapes);
    for (int i = 0; i < g->input_count; i++)
        shapes[i].data = NULL;
    graph *specialised = NULL;
    if (graph_specialise(g, &(graph_binding){.inputs = shapes}, cpu_evaluate_node, &specialised))
        fail_status(name);
    cpu_plan *plan = NULL;
    cpu_weights *weights = cpu_weights_create(g);
    if (cpu_plan_create(specialised, table, weights, &plan))
        fail_status(name);
    for (int i = 0; i < g->output_count; i++) {
        const graph_value *v = &specialised->values[specialised->outputs[i]];
        int64_t dims[TENSOR_RANK_MAX];
        for (int d = 0; d < v->shape.rank; d++)
            dims[d] = v->shape.dims[d].constant;
        cr_assert_eq(tensor_allocate(&outputs[i], &memory, v->dtype, v->shape.rank, dims), 0);
    }
    size_t bytes = (cpu_plan_workspace_bytes(plan) + 63) & ~(size_t)63;
    void *workspace = aligned_alloc(64, bytes);
    memset(workspace, 0xff, bytes); /* nothing may rest on what a workspace holds */
    if (cpu_plan_run(plan, inputs, outputs, workspace, NULL))
        fail_status(name);
    double worst = 0;
    for (int i = 0; i < g->output_count; i++) {
        const char *output = g->values[g->outputs[i]].name;
        const tensor *expected = npz_find(golden, "case%d/out/%s", number, output);
        const tensor *other = npz_find(golden, "case%d/out_noopt/%s", number, output);
        cr_assert(expected != NULL, "%s: no golden output %s", name, output);
        double d = largest_difference(&outputs[i], expected);
        double d_other = other ? largest_difference(&outputs[i], other) : d;
        worst = fmax(worst, fmin(d, d_other));
    }
    cpu_plan_facts facts;
    cpu_plan_describe(plan, &facts);
    cr_expect(facts.buffer_bytes <= facts.total_bytes);
    free(workspace);
    cpu_plan_destroy(plan);
    cpu_weights_release(weights);
    graph_destroy(specialised);
    arena_dispose(&memory);
    return worst;
}

/* Models whose results ONNX's own reference does not reproduce (fp16 rounds per operator) get twice
 * its distance. Where the manifest says that its rule is too wide to detect anything, the nearer
 * of the optimised and the plain result must be met as closely as any other. */
static double tolerance_of(const json_t *model)
{
    double tolerance = json_number_value(json_object_get(model, "tolerance_abs"));
    if (json_object_get(model, "tolerance_note"))
        return 1e-4;
    const char *key;
    json_t *distance;
    json_object_foreach(json_object_get(model, "onnx_reference_vs_ort_maxabs"), key, distance)
        tolerance = fmax(tolerance, 2 * json_number_value(distance));
    return tolerance;
}

static void run_model(const json_t *model, const kernels *table)
{
    const char *name = json_string_value(json_object_get(model, "name"));
    char path[4096];
    graph *g = NULL;
    npz golden;
    snprintf(path, sizeof path, "%s/models/models/%s.onnx", shared_folder(), name);
    if (graph_import_onnx(path, NULL, &g))
        fail_status(name);
    snprintf(path, sizeof path, "%s/models/goldens/%s.npz", shared_folder(), name);
    if (npz_open(&golden, path))
        fail_status(name);
    double worst = 0, tolerance = tolerance_of(model);
    int cases = 0;
    for (; npz_find(&golden, "case%d/in/%s", cases, g->values[g->inputs[0]].name); cases++)
        worst = fmax(worst, run_case(name, g, &golden, cases, table));
    fprintf(stderr, "%-28s %d cases, largest difference %.3g of %.3g\n", name, cases, worst,
            tolerance);
    cr_expect(cases > 0, "%s: no cases", name);
    cr_expect(worst <= tolerance, "%s: differs by %g, tolerance %g", name, worst, tolerance);
    npz_close(&golden);
    graph_destroy(g);
}

static void run_models(const char *level)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/models/manifest.json", shared_folder());
    json_t *manifest = json_load_file(path, 0, NULL);
    if (!manifest)
        cr_skip_test("%s is absent", path);
    const kernels *table;
    cr_assert_eq(kernels_select(level, &table), STATUS_OK);
    size_t i;
    json_t *model;
    json_array_foreach(json_object_get(manifest, "models"), i, model) run_model(model, table);
    json_decref(manifest);
}

Test(cpu_plan, golden_results_with_the_best_kernels)
{
    run_models(NULL);
}

Test(cpu_plan, golden_results_with_scalar_kernels)
{
    run_models("scalar");
}

/* Runs a graph of one input, x, and one output. */
static void run_small(graph *g, float *x, int64_t dim0, int64_t dim1, void *y)
{
    const kernels *table;
    graph *specialised;
    cpu_plan *plan;
    tensor in = {.dtype = DTYPE_F32, .rank = 2, .dims = {dim0, dim1}}, out;
    cr_assert_eq(kernels_select(NULL, &table), STATUS_OK);
    if (graph_specialise(g, &(graph_binding){.inputs = &in}, cpu_evaluate_node, &specialised) ||
        cpu_plan_create(specialised, table, NULL, &plan))
        fail_status("small");
    const graph_value *v = &specialised->values[specialised->outputs[0]];
    out = (tensor){.dtype = v->dtype, .rank = v->shape.rank, .data = y};
    for (int d = 0; d < out.rank; d++)
        out.dims[d] = v->shape.dims[d].constant;
    in.data = x;
    size_t bytes = (cpu_plan_workspace_bytes(plan) + 63) & ~(size_t)63;
    void *workspace = aligned_alloc(64, bytes);
    memset(workspace, 0xff, bytes);
    if (cpu_plan_run(plan, &in, &out, workspace, NULL))
        fail_status("small");
    free(workspace);
    cpu_plan_destroy(plan);
    graph_destroy(specialised);
    graph_destroy(g);
}

static graph *begin_small(int64_t dim0, int64_t dim1)
{
    graph *g = graph_create("small");
    graph_dim dims[] = {graph_dim_constant(dim0), graph_dim_constant(dim1)};
    graph_add_input(g, "x", DTYPE_F32, 2, dims);
    return g;
}

/* Only the second of three parts is read: it begins where the first one ends. */
Test(cpu_plan, a_part_lies_behind_parts_that_nothing_reads)
{
    graph *g = begin_small(2, 5);
    graph_value_index sizes =
        graph_add_constant_i64(g, "n", 1, (int64_t[]){3}, (int64_t[]){1, 3, 1});
    graph_attribute axis = graph_make_int("axis", 1);
    int32_t n =
        graph_add_node(g, GRAPH_OP_SPLIT, "split", 2, (graph_value_index[]){0, sizes}, 3, 1, &axis);
    graph_add_output(g, graph_add(g, GRAPH_OP_NEG, 1, &g->nodes[n].outputs[1], 0, NULL), "y");
    float x[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, y[6];
    run_small(g, x, 2, 5, y);
    cr_expect_arr_eq(y, ((float[]){-1, -2, -3, -6, -7, -8}), sizeof y);
}

/* The places of the largest, without the values. */
Test(cpu_plan, top_k_gives_places_alone)
{
    graph *g = begin_small(2, 5);
    graph_value_index k = graph_add_constant_i64(g, "k", 1, (int64_t[]){1}, &(int64_t){2});
    int32_t n =
        graph_add_node(g, GRAPH_OP_TOP_K, "top", 2, (graph_value_index[]){0, k}, 2, 0, NULL);
    graph_add_output(g, graph_add(g, GRAPH_OP_NEG, 1, &g->nodes[n].outputs[1], 0, NULL), "y");
    float x[] = {0, 9, 2, 3, 4, 5, 6, 7, 1, 9};
    int64_t y[4];
    run_small(g, x, 2, 5, y);
    cr_expect_arr_eq(y, ((int64_t[]){-1, -4, -4, -2}), sizeof y);
}
