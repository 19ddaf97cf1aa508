#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "devices/cpu/evaluate.h"
#include "graph/cost/cost.h"
#include "graph/specialise/specialise.h"
#include "tests/unit/graph/onnx/builder.h"

/* Files of a few hundred bytes that ask for terabytes. What they fold is bounded, so that a check
 * that comes too late fails the test instead of filling the machine. */
#define EVALUATED_BYTES_MAX ((size_t)64 << 20)

static status evaluate(const graph_node *node, const tensor *const *in, tensor *out,
                       const cancel_token *cancel)
{
    for (int i = 0; i < node->output_count; i++)
        cr_assert_leq(tensor_bytes(&out[i]), EVALUATED_BYTES_MAX, "%s is folded", node->name);
    return cpu_evaluate_node(node, in, out, cancel);
}

/* What loading does until the first program would be prepared, for `rows` rows. */
static status examine(const onnx_builder *b, const graph_budget *budget, int64_t rows)
{
    graph *g = NULL, *made = NULL;
    tensor inputs[4] = {0};
    status s = onnx_import(b, &g);
    cr_assert_eq(s, STATUS_OK, "%s", status_message());
    s = graph_infer_symbolic(g, budget, evaluate);
    if (!s)
        s = graph_bind(g, rows, 0, inputs);
    if (!s)
        s = graph_specialise(g, &(graph_binding){inputs, budget}, evaluate, &made);
    if (!s)
        s = graph_cost_check(made, budget);
    graph_destroy(made);
    graph_destroy(g);
    return s;
}

/* STATUS_TOO_LARGE, with each of `words` (NULL-ended) in the message. */
static void expect_rejected(const onnx_builder *b, int64_t rows, const char *const *words)
{
    cr_assert_eq(examine(b, NULL, rows), STATUS_TOO_LARGE, "%s", status_message());
    for (; *words != NULL; words++)
        cr_expect(strstr(status_message(), *words) != NULL, "\"%s\" lacks \"%s\"", status_message(),
                  *words);
}

/* x [N,3,32,32]. */
static onnx_builder *begin(void)
{
    onnx_builder *b = onnx_begin(18);
    onnx_add_input(b, "x", NAMES("N", "3", "32", "32"));
    return b;
}

/* y: the mean of `from`, so that the output of the model is small. */
static onnx_builder *finish(onnx_builder *b, const char *from)
{
    onnx_set_int(onnx_add(b, "ReduceMean", NAMES(from), NAMES("y")), "keepdims", 0);
    onnx_add_output(b, "y");
    return b;
}

/* A node named "big" on x and a list of integers. */
static onnx_builder *with_list(const char *op, int count, const int64_t *list)
{
    onnx_builder *b = begin();
    onnx_add_ints(b, "list", count, list);
    Onnx__Node *n = onnx_add(b, op, NAMES("x", "list"), NAMES("wide"));
    n->name = (char *)"big";
    return finish(b, "wide");
}

Test(cost, is_measured_as_it_is_checked)
{
    graph *g = NULL, *made = NULL;
    tensor inputs[4] = {0};
    graph_spent cost = {0};
    onnx_builder *b = begin();
    onnx_add(b, "Relu", NAMES("x"), NAMES("h"));
    cr_assert_eq(onnx_import(finish(b, "h"), &g), STATUS_OK, "%s", status_message());
    cr_assert_eq(graph_infer_symbolic(g, NULL, evaluate), STATUS_OK);
    cr_assert_eq(graph_bind(g, 2, 0, inputs), STATUS_OK);
    cr_assert_eq(graph_specialise(g, &(graph_binding){inputs, NULL}, evaluate, &made), STATUS_OK);
    cr_assert_eq(graph_cost_measure(made, NULL, &cost), STATUS_OK);
    int64_t elements = 2 * 3 * 32 * 32;
    cr_expect_eq(cost.bytes, 2 * elements * 4 + 4, "x, h and y: %lld", (long long)cost.bytes);
    cr_expect_geq(cost.operations, 2 * elements);
    graph_budget least = {.activation_bytes_max = cost.bytes, .operations_max = cost.operations};
    cr_expect_eq(graph_cost_check(made, &least), STATUS_OK);
    least.activation_bytes_max--;
    cr_expect_eq(graph_cost_check(made, &least), STATUS_TOO_LARGE);
    graph_destroy(made);
    graph_destroy(g);
}

Test(cost, pads_of_thousands)
{
    int64_t pads[8] = {0, 0, 5000, 5000, 0, 0, 5000, 5000};
    expect_rejected(with_list("Pad", 8, pads), 4,
                    NAMES("node \"big\" (Pad)", "4.5 GiB", "the limit is 4 GiB"));
}

Test(cost, tiles_and_expansions)
{
    expect_rejected(with_list("Tile", 4, (int64_t[]){1, 1, 400, 400}), 4,
                    NAMES("big", "of activations at one time"));
    expect_rejected(with_list("Expand", 5, (int64_t[]){1000000, 1, 1, 1, 1}), 1,
                    NAMES("big", "GiB"));
}

Test(cost, constants_of_a_given_shape_that_are_computed_at_run_time)
{
    onnx_builder *b = begin();
    onnx_add_ints(b, "shape", 2, (int64_t[]){40000, 40000});
    Onnx__Node *n = onnx_add(b, "ConstantOfShape", NAMES("shape"), NAMES("zeros"));
    n->name = (char *)"big";
    onnx_add(b, "ReduceMean", NAMES("zeros"), NAMES("zero"));
    onnx_add(b, "Add", NAMES("x", "zero"), NAMES("sum"));
    expect_rejected(finish(b, "sum"), 1, NAMES("big", "ConstantOfShape", "5.96 GiB"));
}

Test(cost, constants_that_a_shape_is_computed_from)
{
    onnx_builder *b = begin();
    onnx_add_ints(b, "start", 1, (int64_t[]){0})->n_dims = 0;
    onnx_add_ints(b, "end", 1, (int64_t[]){1000000000})->n_dims = 0;
    onnx_add_ints(b, "step", 1, (int64_t[]){1})->n_dims = 0;
    onnx_add(b, "Range", NAMES("start", "end", "step"), NAMES("range"))->name = (char *)"big";
    onnx_set_int(onnx_add(b, "ReduceMin", NAMES("range"), NAMES("least")), "keepdims", 1);
    onnx_add_ints(b, "minus", 1, (int64_t[]){-1});
    onnx_add(b, "Add", NAMES("least", "minus"), NAMES("shape"));
    onnx_add(b, "Reshape", NAMES("x", "shape"), NAMES("flat"));
    expect_rejected(finish(b, "flat"), 1, NAMES("big", "Range", "7.45 GiB of folded constants"));
}

Test(cost, resized_images)
{
    for (int is_antialiased = 0; is_antialiased < 2; is_antialiased++) {
        onnx_builder *b = begin();
        float scale = is_antialiased ? 0x1p-20f : 400;
        /* A crop of 2^20 images keeps the size; only the filters are wide. */
        float roi[8] = {0, 0, 0, 0, 1, 1, 0x1p20f, 0x1p20f};
        onnx_add_floats(b, "roi", 8, roi);
        onnx_add_floats(b, "scales", 4, (float[]){1, 1, scale, scale});
        Onnx__Node *n = onnx_add(b, "Resize", NAMES("x", "roi", "scales"), NAMES("wide"));
        n->name = (char *)"big";
        onnx_set_string(n, "mode", "linear");
        if (is_antialiased) {
            onnx_set_string(n, "coordinate_transformation_mode", "tf_crop_and_resize");
            onnx_set_int(n, "antialias", 1);
        }
        expect_rejected(finish(b, "wide"), 4,
                        NAMES("big", "Resize", is_antialiased ? "operations" : "of activations"));
    }
}

Test(cost, transposed_convolutions)
{
    onnx_builder *b = begin();
    float weights[3] = {1, 1, 1};
    int64_t dims[4] = {3, 1, 1, 1};
    Onnx__Tensor *w = onnx_add_floats(b, "w", 3, weights);
    w->n_dims = 4;
    w->dims = dims;
    Onnx__Node *n = onnx_add(b, "ConvTranspose", NAMES("x", "w"), NAMES("wide"));
    n->name = (char *)"big";
    onnx_set_ints(n, "strides", 2, (int64_t[]){500, 500});
    expect_rejected(finish(b, "wide"), 8, NAMES("big", "ConvTranspose", "of activations"));
}

Test(cost, sums_over_many_labels)
{
    onnx_builder *b = onnx_begin(18);
    onnx_add_input(b, "x", NAMES("N", "1000", "1000"));
    Onnx__Node *n = onnx_add(b, "Einsum", NAMES("x", "x", "x"), NAMES("s"));
    n->name = (char *)"big";
    onnx_set_string(n, "equation", "nab,ncd,nef->n");
    expect_rejected(finish(b, "s"), 1, NAMES("big", "Einsum", "6e+18 operations", "1e+14"));
}

Test(cost, values_that_live_at_the_same_time_count_together_and_others_do_not)
{
    graph_budget budget = {.activation_bytes_max = 5 * 12288, .operations_max = INT64_MAX};
    onnx_builder *b = begin(); /* x: 12,288 bytes a row */
    onnx_add(b, "Relu", NAMES("x"), NAMES("a"));
    onnx_add(b, "Sigmoid", NAMES("a"), NAMES("b"));
    onnx_add(b, "Tanh", NAMES("b"), NAMES("c"));
    onnx_add(b, "Exp", NAMES("c"), NAMES("d"));
    onnx_add(b, "Add", NAMES("d", "a"), NAMES("e")); /* x, a, d and e are alive: 4 */
    finish(b, "e");
    cr_expect_eq(examine(b, &budget, 1), STATUS_OK, "%s", status_message());
    cr_expect_eq(examine(b, &(graph_budget){4 * 12288, INT64_MAX, NULL}, 1), STATUS_OK, "%s",
                 status_message());
    cr_expect_eq(examine(b, &(graph_budget){4 * 12288 - 1, INT64_MAX, NULL}, 1), STATUS_TOO_LARGE);
    cr_expect_eq(examine(b, &budget, 2), STATUS_TOO_LARGE);
}

Test(cost, operations_of_all_nodes_count_together)
{
    onnx_builder *b = begin(); /* 3,072 elements a row, in Relu, Exp and ReduceMean */
    onnx_add(b, "Relu", NAMES("x"), NAMES("a"));
    onnx_add(b, "Exp", NAMES("a"), NAMES("b"));
    finish(b, "b");
    cr_expect_eq(examine(b, &(graph_budget){INT64_MAX, 9216, NULL}, 1), STATUS_OK, "%s",
                 status_message());
    cr_expect_eq(examine(b, &(graph_budget){INT64_MAX, 9215, NULL}, 1), STATUS_TOO_LARGE);
    cr_expect(strstr(status_message(), "ReduceMean") != NULL, "%s", status_message());
}

Test(cost, sums_do_not_overflow)
{
    cr_expect_eq(graph_cost_add(INT64_MAX - 1, 1), INT64_MAX);
    cr_expect_eq(graph_cost_add(INT64_MAX, INT64_MAX), INT64_MAX);
    onnx_builder *b = onnx_begin(18);
    onnx_add_input(b, "x", NAMES("N", "60000"));
    const char *terms = "na,nb,nc,nd,ne,nf,ng,nh->n";
    onnx_set_string(
        onnx_add(b, "Einsum", NAMES("x", "x", "x", "x", "x", "x", "x", "x"), NAMES("s")),
        "equation", terms);
    expect_rejected(finish(b, "s"), 1, NAMES("Einsum", "9.22e+18 operations"));
}

Test(cost, a_cancelled_load_folds_nothing)
{
    cancel_token c = {.deadline_ns = clock_now_ns()};
    onnx_builder *b = finish(begin(), "x");
    cr_expect_eq(examine(b, &(graph_budget){INT64_MAX, INT64_MAX, &c}, 1),
                 STATUS_DEADLINE_EXCEEDED);
    c.deadline_ns = 0;
    cancel_request(&c);
    cr_expect_eq(examine(b, &(graph_budget){INT64_MAX, INT64_MAX, &c}, 1), STATUS_CANCELLED);
}

Test(cost, sizes_are_written_with_their_unit)
{
    char text[32];
    cr_expect_str_eq(graph_cost_bytes_text(text, 512), "512 bytes");
    cr_expect_str_eq(graph_cost_bytes_text(text, (int64_t)3 << 29), "1.5 GiB");
    cr_expect_str_eq(graph_cost_bytes_text(text, INT64_MAX), "8 EiB");
}
