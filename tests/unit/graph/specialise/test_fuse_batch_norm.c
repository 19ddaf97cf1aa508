#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "devices/cpu/evaluate.h"
#include "graph/encoder/match.h"
#include "graph/import.h"
#include "graph/specialise/fuse_batch_norm.h"
#include "graph/specialise/specialise.h"

/* Conv and BatchNormalization, in the variations that matter. */
typedef struct net_pattern {
    bool has_bias, shows_conv, normalises_input;
    bool is_transposed; /* ConvTranspose */
    bool has_affine;    /* Mul and Add of constants behind it, by channel and by number */
    bool has_wide_add;  /* Add of one number per column: nothing that a bias can be */
    int group;
} net_pattern;

static uint64_t state = 3;

static graph_value_index weights(graph *g, int rank, const int64_t *dims, float least, float most)
{
    float data[512];
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= dims[i];
    cr_assert_leq(count, 512);
    for (int64_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        data[i] = least + (most - least) * (float)(state >> 40) / 16777216.0f;
    }
    return graph_add_constant_f32(g, NULL, rank, dims, data);
}

static graph_value_index normalise(graph *g, graph_value_index x, int64_t channels)
{
    graph_value_index in[] = {x, weights(g, 1, &channels, -2, 2), weights(g, 1, &channels, -1, 1),
                              weights(g, 1, &channels, -1, 1), weights(g, 1, &channels, 0.1f, 3)};
    graph_attribute epsilon = graph_make_float("epsilon", 0.01f);
    return graph_add(g, GRAPH_OP_BATCH_NORMALIZATION, 5, in, 1, &epsilon);
}

static graph_value_index add_affine(graph *g, graph_value_index x, int64_t channels)
{
    graph_value_index factor[] = {weights(g, 3, (int64_t[]){channels, 1, 1}, -2, 2), x};
    x = graph_add(g, GRAPH_OP_MUL, 2, factor, 0, NULL);
    graph_value_index shift[] = {x, weights(g, 1, (int64_t[]){1}, -2, 2)};
    return graph_add(g, GRAPH_OP_ADD, 2, shift, 0, NULL);
}

static graph *make_net(const net_pattern *f)
{
    graph *g = graph_create("net");
    int64_t group = f->group > 0 ? f->group : 1, channels = 6;
    graph_dim dims[] = {{.batch = 1}, {.constant = 4}, {.constant = 5}, {.constant = 7}};
    graph_value_index x = graph_add_input(g, "x", DTYPE_F32, 4, dims);
    if (f->normalises_input)
        x = normalise(g, x, 4);
    int64_t forth[] = {channels, 4 / group, 3, 3}, back[] = {4, channels, 3, 3};
    graph_value_index in[] = {x, weights(g, 4, f->is_transposed ? back : forth, -1, 1),
                              f->has_bias ? weights(g, 1, &channels, -1, 1) : GRAPH_NO_VALUE};
    int64_t pads[] = {1, 1, 1, 1};
    graph_attribute a[] = {graph_make_int("group", group), graph_make_ints(g, "pads", 4, pads)};
    graph_op op = f->is_transposed ? GRAPH_OP_CONV_TRANSPOSE : GRAPH_OP_CONV;
    graph_value_index conv = graph_add(g, op, f->has_bias ? 3 : 2, in, 2, a), y = conv;
    if (f->has_affine)
        y = add_affine(g, y, channels);
    if (f->has_wide_add) {
        graph_value_index sum[] = {y, weights(g, 1, (int64_t[]){7}, -1, 1)};
        y = graph_add(g, GRAPH_OP_ADD, 2, sum, 0, NULL);
    }
    y = normalise(g, y, channels);
    y = graph_add(g, GRAPH_OP_RELU, 1, &y, 0, NULL);
    graph_add_output(g, y, "y");
    if (f->shows_conv)
        graph_add_output(g, conv, "conv");
    return g;
}

/* All outputs for a fixed random image. */
static void compute(const graph *g, const int64_t dims[4], arena *memory, tensor *outputs)
{
    tensor image, shape;
    graph *made;
    match m;
    cr_assert_eq(tensor_allocate(&image, memory, DTYPE_F32, 4, dims), STATUS_OK);
    for (int64_t i = 0; i < tensor_count(&image); i++)
        ((float *)image.data)[i] = sinf((float)(i * i));
    shape = image;
    shape.data = NULL;
    cr_assert_eq(graph_specialise(g, &(graph_binding){.inputs = &shape}, cpu_evaluate_node, &made),
                 STATUS_OK, "%s", status_message());
    cr_assert_eq(match_open(&m, made, NULL, cpu_evaluate_node), STATUS_OK);
    for (int i = 0; i < made->output_count; i++)
        cr_assert_eq(
            match_experiment(&m, memory, 1, made->inputs, &image, made->outputs[i], &outputs[i]),
            STATUS_OK, "%s", status_message());
    match_close(&m);
    graph_destroy(made);
}

/* A model with BatchNormalization nodes as PyTorch keeps them on request. */
static graph *open_shared(void)
{
    char path[500];
    graph *g = NULL;
    const char *shared = getenv("PENSTOCK_SHARED");
    snprintf(path, sizeof path, "%s/models/models/cnn_3x32x32_bn.onnx",
             shared != NULL ? shared : PENSTOCK_SOURCE_DIR "/../shared");
    if (access(path, R_OK) != 0)
        cr_skip_test("%s is not there", path);
    cr_assert_eq(graph_import_onnx(path, NULL, &g), STATUS_OK, "%s", status_message());
    return g;
}

static int count_batch_norms(const graph *g)
{
    int count = 0;
    for (int32_t i = 0; i < g->node_count; i++)
        count += g->nodes[i].op == GRAPH_OP_BATCH_NORMALIZATION;
    return count;
}

static void check(net_pattern form, int folded, int left)
{
    arena memory = {0};
    tensor before[2], after[2];
    graph *g = make_net(&form);
    compute(g, (int64_t[]){2, 4, 5, 7}, &memory, before);
    cr_assert_eq(graph_fuse_batch_norms(g), folded);
    cr_assert_eq(count_batch_norms(g), left);
    for (int32_t i = 0; i < g->node_count; i++)
        cr_assert_eq(g->values[g->nodes[i].outputs[0]].producer, i);
    compute(g, (int64_t[]){2, 4, 5, 7}, &memory, after);
    for (int k = 0; k < g->output_count; k++)
        for (int64_t i = 0; i < tensor_count(&before[k]); i++)
            cr_assert_float_eq(((float *)before[k].data)[i], ((float *)after[k].data)[i], 2e-5f);
    graph_destroy(g);
    arena_dispose(&memory);
}

Test(batch_norm, goes_into_the_convolution)
{
    check((net_pattern){0}, 1, 0);
    check((net_pattern){.has_bias = true}, 1, 0);
    check((net_pattern){.has_bias = true, .group = 2}, 1, 0);
}

Test(batch_norm, goes_into_a_transposed_convolution)
{
    check((net_pattern){.is_transposed = true}, 1, 0);
    check((net_pattern){.is_transposed = true, .has_bias = true, .has_affine = true}, 3, 0);
}

Test(batch_norm, so_do_constants_that_multiply_or_are_added)
{
    check((net_pattern){.has_affine = true}, 3, 0);
    check((net_pattern){.has_affine = true, .has_bias = true, .group = 2}, 3, 0);
    check((net_pattern){.has_wide_add = true}, 0, 1);
}

Test(batch_norm, stays_where_the_convolution_is_seen)
{
    check((net_pattern){.shows_conv = true}, 0, 1);
}

Test(batch_norm, stays_before_a_convolution)
{
    check((net_pattern){.normalises_input = true, .has_bias = true}, 1, 1);
}

Test(batch_norm, of_an_exported_model)
{
    static const int64_t dims[] = {2, 3, 32, 32};
    arena memory = {0};
    tensor before, after;
    graph *g = open_shared();
    compute(g, dims, &memory, &before);
    graph_fold_constants(g, NULL, cpu_evaluate_node);
    int norms = count_batch_norms(g);
    cr_assert_gt(norms, 0);
    cr_assert_eq(graph_fuse_batch_norms(g), norms);
    compute(g, dims, &memory, &after);
    for (int64_t i = 0; i < tensor_count(&before); i++)
        cr_assert_float_eq(((float *)before.data)[i], ((float *)after.data)[i], 1e-4f);
    graph_destroy(g);
    arena_dispose(&memory);
}
