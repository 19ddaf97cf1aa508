#include "tests/unit/graph/onnx/builder.h"

#include <criterion/criterion.h>

/* Bodies of Loop and Scan. */

static onnx_builder *begin(void)
{
    onnx_builder *b = onnx_begin(17);
    onnx_add_input(b, "x", NAMES("batch", "8"));
    onnx_add_floats(b, "half", 1, &(float){0.5f});
    return b;
}

static void add_body_input(onnx_builder *b, const char *name)
{
    onnx_add_input(b, name, NAMES("1"));
}

/* y = a Loop whose body reads x and half of the graph around it. */
static Onnx__Node *add_loop(onnx_builder *b)
{
    Onnx__Node *n = onnx_add(b, "Loop", NAMES("", "", "x"), NAMES("y"));
    onnx_builder *body = onnx_begin(17);
    add_body_input(body, "i");
    add_body_input(body, "c");
    add_body_input(body, "s");
    onnx_add(body, "Mul", NAMES("x", "half"), NAMES("m"));
    onnx_add(body, "Add", NAMES("m", "x"), NAMES("a"));
    onnx_add(body, "Sub", NAMES("s", "a"), NAMES("t"));
    onnx_add(body, "Identity", NAMES("c"), NAMES("d"));
    onnx_add_output(body, "d");
    onnx_add_output(body, "t");
    onnx_set(n, "body", ONNX__ATTRIBUTE__TYPE__GRAPH)->g = &body->graph;
    return n;
}

Test(import_onnx_closure, captured_values_become_inputs_and_constants_are_shared)
{
    onnx_builder *b = begin();
    onnx_add(b, "Relu", NAMES("x"), NAMES("r"));
    add_loop(b);
    onnx_add_output(b, "y");
    graph *g = onnx_expect(b);
    const graph_node *n = onnx_node_of(g, GRAPH_OP_LOOP);
    const graph *body = graph_find_attribute(n, "body")->graph;
    cr_assert_eq(n->input_count, 4, "M, cond, the state, and x once");
    cr_assert_eq(n->inputs[3], g->inputs[0]);
    cr_assert_eq(graph_attribute_int(n, "captured", 0), 1);
    cr_assert_eq(body->input_count, 4);
    cr_assert_eq(body->nodes[0].inputs[0], body->inputs[3]);
    cr_assert_eq(body->nodes[1].inputs[1], body->inputs[3]);
    cr_assert_not_null(body->values[body->nodes[0].inputs[1]].constant);
    cr_assert_eq(body->values[body->nodes[0].inputs[1]].constant->data,
                 g->values[graph_find_value(g, "half")].constant->data);
    graph_destroy(g);
}

Test(import_onnx_closure, a_body_in_a_body_captures_through_both)
{
    onnx_builder *b = begin(), *outer = onnx_begin(17);
    Onnx__Node *n = onnx_add(b, "Loop", NAMES("", "", "x"), NAMES("z"));
    add_body_input(outer, "i");
    add_body_input(outer, "c");
    add_body_input(outer, "q");
    add_loop(outer);
    onnx_add(outer, "Identity", NAMES("c"), NAMES("d"));
    onnx_add_output(outer, "d");
    onnx_add_output(outer, "y");
    onnx_set(n, "body", ONNX__ATTRIBUTE__TYPE__GRAPH)->g = &outer->graph;
    onnx_add_output(b, "z");
    graph *g = onnx_expect(b);
    const graph *middle = graph_find_attribute(onnx_node_of(g, GRAPH_OP_LOOP), "body")->graph;
    const graph_node *inner = onnx_node_of(middle, GRAPH_OP_LOOP);
    cr_assert_eq(middle->input_count, 4);
    cr_assert_eq(inner->input_count, 4);
    cr_assert_eq(inner->inputs[2], middle->inputs[3], "x, captured by the middle body");
    cr_assert_eq(inner->inputs[3], middle->inputs[3]);
    graph_destroy(g);
}

/* The branches of an If in a body read values of the body, and of the graph around it. */
Test(import_onnx_closure, a_branch_in_a_body_reads_both)
{
    onnx_builder *b = begin(), *body = onnx_begin(17);
    Onnx__Node *n = onnx_add(b, "Loop", NAMES("", "", "x"), NAMES("y"));
    add_body_input(body, "i");
    add_body_input(body, "c");
    add_body_input(body, "s");
    onnx_add(body, "Less", NAMES("s", "half"), NAMES("l"));
    Onnx__Node *choice = onnx_add(body, "If", NAMES("l"), NAMES("t"));
    for (int i = 0; i < 2; i++) {
        onnx_builder *branch = onnx_begin(17);
        onnx_add(branch, i == 0 ? "Mul" : "Add", NAMES("s", "x"), NAMES("r"));
        onnx_add_output(branch, "r");
        onnx_set(choice, i == 0 ? "then_branch" : "else_branch", ONNX__ATTRIBUTE__TYPE__GRAPH)->g =
            &branch->graph;
    }
    onnx_add(body, "Identity", NAMES("c"), NAMES("d"));
    onnx_add_output(body, "d");
    onnx_add_output(body, "t");
    onnx_set(n, "body", ONNX__ATTRIBUTE__TYPE__GRAPH)->g = &body->graph;
    onnx_add_output(b, "y");
    graph *g = onnx_expect(b);
    const graph *made = graph_find_attribute(onnx_node_of(g, GRAPH_OP_LOOP), "body")->graph;
    cr_assert_str_eq(onnx_operators(made), "Less Mul Add penstock.If Identity");
    cr_assert_eq(made->input_count, 4, "its own three, and x once");
    for (int i = 1; i <= 2; i++) {
        cr_assert_eq(made->nodes[i].inputs[0], made->inputs[2]);
        cr_assert_eq(made->nodes[i].inputs[1], made->inputs[3]);
    }
    graph_destroy(g);
}

Test(import_onnx_closure, rejects_bodies_that_are_none)
{
    onnx_builder *b = begin();
    onnx_add(b, "Loop", NAMES("", "", "x"), NAMES("y"));
    onnx_add_output(b, "y");
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("'y'", "Loop", "body"));
    b = begin();
    onnx_set_int(add_loop(b), "captured", 1);
    onnx_add_output(b, "y");
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("'y'", "captured"));
    b = begin();
    add_loop(b)->input[2] = "missing";
    onnx_add_output(b, "y");
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("'y'", "missing"));
}
