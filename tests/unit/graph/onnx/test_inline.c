#include "tests/unit/graph/onnx/builder.h"

#include <criterion/criterion.h>

/* Model-local functions and branches. */

static onnx_builder *begin(void)
{
    onnx_builder *b = onnx_begin(17);
    onnx_import_domain(b, "my.own", 1);
    onnx_add_input(b, "x", NAMES("batch", "8"));
    return b;
}

static Onnx__Node *call(onnx_builder *b, const char *name, const char *const *inputs,
                        const char *const *outputs)
{
    Onnx__Node *n = onnx_add(b, name, inputs, outputs);
    n->domain = "my.own";
    return n;
}

Test(import_onnx_inline, puts_a_functions_nodes_in_place_of_its_call)
{
    onnx_builder *b = begin();
    Onnx__Node *body[] = {onnx_make_node("LeakyRelu", NAMES("a"), NAMES("t")),
                          onnx_make_node("Mul", NAMES("t", "a"), NAMES("c"))};
    onnx_set_reference(body[0], "alpha", ONNX__ATTRIBUTE__TYPE__FLOAT, "slope");
    onnx_add_function(b, "my.own", "Odd", NAMES("a"), NAMES("c"), 2, body);
    onnx_set_float(call(b, "Odd", NAMES("x"), NAMES("y")), "slope", 0.25f);
    call(b, "Odd", NAMES("y"), NAMES("z"));
    onnx_add_output(b, "z");
    graph *g = onnx_expect(b);
    cr_assert_str_eq(onnx_operators(g), "LeakyRelu Mul LeakyRelu Mul");
    cr_assert_eq(graph_attribute_float(&g->nodes[0], "alpha", 9), 0.25f);
    cr_assert_eq(g->nodes[2].attribute_count, 0, "a reference to nothing is an absent attribute");
    cr_assert_str_eq(g->values[g->outputs[0]].name, "z");
    cr_assert_eq(g->nodes[2].inputs[0], g->nodes[1].outputs[0]);
    graph_destroy(g);
}

Test(import_onnx_inline, gives_functions_their_attributes_defaults)
{
    onnx_builder *b = begin();
    Onnx__Node *body[] = {onnx_make_node("LeakyRelu", NAMES("a"), NAMES("c"))};
    onnx_set_reference(body[0], "alpha", ONNX__ATTRIBUTE__TYPE__FLOAT, "slope");
    Onnx__Function *f = onnx_add_function(b, "my.own", "Odd", NAMES("a"), NAMES("c"), 1, body);
    Onnx__Node carrier = ONNX__NODE__INIT;
    onnx_set_float(&carrier, "slope", 0.125f);
    f->attribute_proto = carrier.attribute;
    f->n_attribute_proto = 1;
    call(b, "Odd", NAMES("x"), NAMES("y"));
    onnx_add_output(b, "y");
    graph *g = onnx_expect(b);
    cr_assert_eq(graph_attribute_float(&g->nodes[0], "alpha", 9), 0.125f);
    graph_destroy(g);
}

Test(import_onnx_inline, hands_absent_inputs_and_nested_calls_on)
{
    onnx_builder *b = begin();
    Onnx__Node *inner[] = {onnx_make_node("Clip", NAMES("v", "low", "high"), NAMES("w"))};
    Onnx__Node *outer[] = {onnx_make_node("Inner", NAMES("a", "", "h"), NAMES("r"))};
    outer[0]->domain = "my.own";
    onnx_add_function(b, "my.own", "Inner", NAMES("v", "low", "high"), NAMES("w"), 1, inner);
    onnx_add_function(b, "my.own", "Outer", NAMES("a", "h"), NAMES("r"), 1, outer);
    onnx_add_floats(b, "six", 1, &(float){6});
    call(b, "Outer", NAMES("x", "six"), NAMES("y"));
    call(b, "Outer", NAMES("y"), NAMES("z"));
    onnx_add_output(b, "z");
    graph *g = onnx_expect(b);
    cr_assert_str_eq(onnx_operators(g), "Clip Clip");
    cr_assert_eq(g->nodes[0].inputs[1], GRAPH_NO_VALUE);
    cr_assert_str_eq(onnx_constant_text(g, g->nodes[0].inputs[2]), "6");
    cr_assert_eq(graph_input_of(&g->nodes[1], 2), GRAPH_NO_VALUE);
    graph_destroy(g);
}

Test(import_onnx_inline, a_function_may_return_its_input)
{
    onnx_builder *b = begin();
    onnx_add_function(b, "my.own", "Same", NAMES("a"), NAMES("a"), 0, NULL);
    call(b, "Same", NAMES("x"), NAMES("y"));
    onnx_add_output(b, "y");
    graph *g = onnx_expect(b);
    cr_assert_str_eq(g->values[g->outputs[0]].name, "y");
    cr_assert_str_eq(onnx_operators(g), "Identity");
    graph_destroy(g);
}

Test(import_onnx_inline, rejects_functions_that_call_themselves)
{
    onnx_builder *b = begin();
    Onnx__Node *body[] = {onnx_make_node("Odd", NAMES("a"), NAMES("c"))};
    body[0]->domain = "my.own";
    onnx_add_function(b, "my.own", "Odd", NAMES("a"), NAMES("c"), 1, body);
    call(b, "Odd", NAMES("x"), NAMES("y"));
    onnx_add_output(b, "y");
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("Odd", "recursive"));
}

/* 2^30 nodes from 30 functions that each call the next one twice. */
Test(import_onnx_inline, stops_functions_that_multiply)
{
    static const char *const names[] = {"f0",  "f1",  "f2",  "f3",  "f4",  "f5",  "f6",  "f7",
                                        "f8",  "f9",  "f10", "f11", "f12", "f13", "f14", "f15",
                                        "f16", "f17", "f18", "f19", "f20", "f21", "f22", "f23",
                                        "f24", "f25", "f26", "f27", "f28", "f29", "Relu"};
    onnx_builder *b = begin();
    for (int i = 0; i < 30; i++) {
        Onnx__Node *body[] = {onnx_make_node(names[i + 1], NAMES("a"), NAMES("m")),
                              onnx_make_node(names[i + 1], NAMES("m"), NAMES("c"))};
        body[0]->domain = body[1]->domain = i < 29 ? "my.own" : "";
        onnx_add_function(b, "my.own", names[i], NAMES("a"), NAMES("c"), 2, body);
    }
    call(b, "f0", NAMES("x"), NAMES("y"));
    onnx_add_output(b, "y");
    onnx_expect_failure(b, STATUS_TOO_LARGE, NAMES("nodes"));
}

static onnx_builder *begin_if(const char *const *condition_inputs, const char *condition_op)
{
    onnx_builder *b = begin();
    onnx_add_floats(b, "one", 1, &(float){1});
    onnx_add_floats(b, "two", 1, &(float){2});
    onnx_add(b, condition_op, condition_inputs, NAMES("c"));
    Onnx__Node *n = onnx_add(b, "If", NAMES("c"), NAMES("y"));
    static const char *const branches[] = {"then_branch", "else_branch"};
    for (int i = 0; i < 2; i++) {
        onnx_builder *branch = onnx_begin(17);
        onnx_add_floats(branch, "w", 1, &(float){3});
        onnx_add(branch, i == 0 ? "Mul" : "Add", NAMES("x", "w"), NAMES("r"));
        onnx_add_output(branch, "r");
        onnx_set(n, branches[i], ONNX__ATTRIBUTE__TYPE__GRAPH)->g = &branch->graph;
    }
    onnx_add_output(b, "y");
    return b;
}

Test(import_onnx_inline, takes_the_branch_of_a_constant_condition)
{
    graph *g = onnx_expect(begin_if(NAMES("one", "two"), "Less"));
    cr_assert_str_eq(onnx_operators(g), "Less Mul");
    cr_assert_str_eq(onnx_constant_text(g, g->nodes[1].inputs[1]), "3");
    cr_assert_str_eq(g->values[g->outputs[0]].name, "y");
    graph_destroy(g);
    g = onnx_expect(begin_if(NAMES("one", "two"), "Greater"));
    cr_assert_str_eq(onnx_operators(g), "Greater Add");
    graph_destroy(g);
}

/* Which branch it is may be known when shapes are. */
Test(import_onnx_inline, keeps_both_branches_of_another_condition)
{
    graph *g = onnx_expect(begin_if(NAMES("x", "two"), "Less"));
    cr_assert_str_eq(onnx_operators(g), "Less Mul Add penstock.If");
    const graph_node *n = onnx_node_of(g, GRAPH_OP_IF);
    cr_assert_eq(n->input_count, 3);
    cr_assert_eq(n->inputs[0], g->nodes[0].outputs[0]);
    cr_assert_eq(n->inputs[1], g->nodes[1].outputs[0]);
    cr_assert_eq(n->inputs[2], g->nodes[2].outputs[0]);
    cr_assert_str_eq(g->values[g->outputs[0]].name, "y");
    graph_destroy(g);
}

Test(import_onnx_inline, rejects_our_own_operators)
{
    onnx_builder *own = begin();
    onnx_add(own, "penstock.If", NAMES("x", "x", "x"), NAMES("y"));
    onnx_add_output(own, "y");
    onnx_expect_failure(own, STATUS_UNSUPPORTED, NAMES("'y'", "penstock.If"));
}
