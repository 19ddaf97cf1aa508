/* Decision trees of domain ai.onnx.ml. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/graph/onnx/builder.h"

#define NODES 5

static void set_modes(Onnx__Node *n, ProtobufCBinaryData *modes, const char *root)
{
    const char *names[NODES] = {root, "LEAF", "BRANCH_LT", "LEAF", "LEAF"};
    Onnx__Attribute *a = onnx_set(n, "nodes_modes", ONNX__ATTRIBUTE__TYPE__STRINGS);
    for (int i = 0; i < NODES; i++)
        modes[i] = (ProtobufCBinaryData){strlen(names[i]), (uint8_t *)(uintptr_t)names[i]};
    a->n_strings = NODES;
    a->strings = modes;
}

/* A tree of two branches. Its nodes have the numbers 3 to 7; `second`: where the second branch
 * leads when it is false. */
static onnx_builder *begin(const char *root, int64_t second, Onnx__Node **made)
{
    static ProtobufCBinaryData modes[NODES];
    onnx_builder *b = onnx_begin(17);
    onnx_import_domain(b, "ai.onnx.ml", 3);
    onnx_add_input(b, "x", NAMES("batch", "4"));
    Onnx__Node *n = onnx_add(b, "TreeEnsembleRegressor", NAMES("x"), NAMES("y"));
    n->domain = "ai.onnx.ml";
    set_modes(n, modes, root);
    onnx_set_floats(n, "nodes_values", NODES, (float[]){1.5f, 0, 2.5f, 0, 0});
    onnx_set_ints(n, "nodes_treeids", NODES, (int64_t[]){8, 8, 8, 8, 8});
    onnx_set_ints(n, "nodes_nodeids", NODES, (int64_t[]){3, 4, 5, 6, 7});
    onnx_set_ints(n, "nodes_featureids", NODES, (int64_t[]){0, 0, 3, 0, 0});
    onnx_set_ints(n, "nodes_truenodeids", NODES, (int64_t[]){4, 0, 6, 0, 0});
    onnx_set_ints(n, "nodes_falsenodeids", NODES, (int64_t[]){5, 0, second, 0, 0});
    onnx_set_ints(n, "target_treeids", 3, (int64_t[]){8, 8, 8});
    onnx_set_ints(n, "target_nodeids", 3, (int64_t[]){7, 4, 6});
    onnx_set_ints(n, "target_ids", 3, (int64_t[]){0, 0, 0});
    onnx_set_floats(n, "target_weights", 3, (float[]){30, 10, 20});
    onnx_add_output(b, "y");
    *made = n;
    return b;
}

Test(import_onnx_trees, lists_become_constants)
{
    Onnx__Node *n;
    graph *g = onnx_expect(begin("BRANCH_LEQ", 7, &n));
    cr_assert_str_eq(onnx_operators(g), "penstock.Trees Cast Identity");
    const graph_node *trees = &g->nodes[0];
    const tensor *nodes = g->values[trees->inputs[1]].constant;
    cr_assert_eq(nodes->dims[0], 2);
    double split;
    memcpy(&split, (const int32_t *)nodes->data + 8, sizeof split);
    cr_assert_eq(split, 2.5);
    cr_assert_eq(tensor_get_integer(nodes, 5), 1 | 3 << 4); /* LT, column 3 */
    cr_assert_str_eq(onnx_constant_text(g, trees->inputs[2]), "0,1,2,3");
    cr_assert_str_eq(onnx_constant_text(g, trees->inputs[5]), "0");
    const tensor *weights = g->values[trees->inputs[4]].constant;
    for (int i = 0; i < 3; i++) /* by leaf */
        cr_assert_eq(tensor_get_number(weights, i), 10 * (i + 1));
    cr_assert_eq(graph_attribute_int(trees, "columns", 0), 4);
    graph_destroy(g);
}

Test(import_onnx_trees, nodes_that_are_no_trees_are_rejected)
{
    Onnx__Node *n;
    onnx_expect_failure(begin("BRANCH_LEQ", 6, &n), STATUS_CORRUPT, NAMES("'y'", "no trees"));
    onnx_expect_failure(begin("BRANCH_LEQ", 3, &n), STATUS_CORRUPT, NAMES("no root"));
    onnx_expect_failure(begin("BRANCH_LEQ", 9, &n), STATUS_CORRUPT, NAMES("not there"));
    onnx_expect_failure(begin("BRANCH_LEQ", INT64_MAX, &n), STATUS_CORRUPT, NAMES("not there"));
    onnx_expect_failure(begin("BRANCH_LEQ", INT64_MIN, &n), STATUS_CORRUPT, NAMES("not there"));
    onnx_expect_failure(begin("LEAF", 7, &n), STATUS_CORRUPT, NAMES("1 trees and 3 roots"));
    onnx_expect_failure(begin("BRANCH_MEMBER", 7, &n), STATUS_UNSUPPORTED, NAMES("BRANCH_MEMBER"));
    onnx_builder *b = begin("BRANCH_LEQ", 7, &n);
    onnx_set_ints(n, "nodes_hitrates_too", 1, (int64_t[]){1});
    onnx_expect_failure(b, STATUS_UNSUPPORTED, NAMES("nodes_hitrates_too"));
}

/* Numbers in a tensor, and nothing else that a file may call base values. */
Test(import_onnx_trees, base_values_are_numbers)
{
    static ProtobufCBinaryData text = {1, (uint8_t *)"1"};
    const int64_t one = 1;
    const float half = 0.5f;
    Onnx__Node *n;
    Onnx__Tensor *t = onnx_make_tensor("", 8, 1, &one); /* a string */
    t->n_string_data = 1;
    t->string_data = &text;
    onnx_builder *b = begin("BRANCH_LEQ", 7, &n);
    onnx_set(n, "base_values_as_tensor", ONNX__ATTRIBUTE__TYPE__TENSOR)->t = t;
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("base values"));
    b = begin("BRANCH_LEQ", 7, &n);
    onnx_set_ints(n, "base_values_as_tensor", 1, &one);
    onnx_set_floats(n, "base_values", 1, &half);
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("base values"));
    b = begin("BRANCH_LEQ", 7, &n);
    onnx_set_floats(n, "base_values", 1, &half);
    graph *g = onnx_expect(b);
    cr_assert_str_eq(onnx_operators(g), "penstock.Trees Cast Add Identity");
    graph_destroy(g);
}
