#include <criterion/criterion.h>
#include <string.h>

#include "graph/specialise/specialise.h"

/* A little evaluator for the operators these graphs use: graph/ has none of its own. */
static int evaluations;

static status evaluate(const graph_node *node, const tensor *const *in, tensor *out,
                       const cancel_token *cancel)
{
    (void)cancel;
    evaluations++;
    int64_t count = tensor_count(&out[0]);
    switch (node->op) {
    case GRAPH_OP_GATHER: /* of a list, by one index */
        tensor_set_number(&out[0], 0, tensor_get_number(in[0], tensor_get_integer(in[1], 0)));
        return STATUS_OK;
    case GRAPH_OP_MUL:
        for (int64_t i = 0; i < count; i++)
            tensor_set_number(&out[0], i,
                              tensor_get_number(in[0], in[0]->rank ? i : 0) *
                                  tensor_get_number(in[1], in[1]->rank ? i : 0));
        return STATUS_OK;
    case GRAPH_OP_CONCAT: {
        int64_t at = 0;
        for (int k = 0; k < node->input_count; k++)
            for (int64_t i = 0; i < tensor_count(in[k]); i++)
                tensor_set_number(&out[0], at++, tensor_get_number(in[k], i));
        return STATUS_OK;
    }
    case GRAPH_OP_CONSTANT_OF_SHAPE:
        for (int64_t i = 0; i < count; i++)
            tensor_set_number(&out[0], i, 0);
        return STATUS_OK;
    case GRAPH_OP_CAST:
        for (int64_t i = 0; i < count; i++)
            tensor_set_number(&out[0], i, tensor_get_number(in[0], i));
        return STATUS_OK;
    case GRAPH_OP_SUB:
        tensor_set_number(&out[0], 0, tensor_get_number(in[0], 0) - tensor_get_number(in[1], 0));
        return STATUS_OK;
    case GRAPH_OP_NOT:
        tensor_set_number(&out[0], 0, tensor_get_number(in[0], 0) == 0);
        return STATUS_OK;
    case GRAPH_OP_RANGE:
        for (int64_t i = 0; i < count; i++)
            tensor_set_number(
                &out[0], i, tensor_get_number(in[0], 0) + (double)i * tensor_get_number(in[2], 0));
        return STATUS_OK;
    default:
        return status_fail(STATUS_UNSUPPORTED, "not in this test");
    }
}

static const graph_dim batch = {.batch = 1}, sequence = {.sequence = 1};

static graph_value_index add_x(graph *g)
{
    return graph_add_input(g, "x", DTYPE_F32, 3,
                           (graph_dim[]){batch, sequence, graph_dim_constant(8)});
}

static graph_value_index list(graph *g, int64_t n)
{
    return graph_add_constant_i64(g, NULL, 1, (int64_t[]){1}, &n);
}

static graph_value_index apply(graph *g, graph_op op, graph_value_index a, graph_value_index b)
{
    return graph_add(g, op, b == GRAPH_NO_VALUE ? 1 : 2, (graph_value_index[]){a, b}, 0, NULL);
}

/* The dim `axis` of x, as exporters spell it: Gather(Shape(x), axis). */
static graph_value_index dim_of(graph *g, graph_value_index x, int64_t axis)
{
    graph_value_index shape = apply(g, GRAPH_OP_SHAPE, x, GRAPH_NO_VALUE);
    return apply(g, GRAPH_OP_GATHER, shape, list(g, axis));
}

static graph *specialise_at(const graph *g, int64_t b, int64_t s)
{
    tensor inputs[8] = {0};
    graph *made = NULL;
    cr_assert_eq(graph_bind(g, b, s, inputs), STATUS_OK, "%s", status_message());
    cr_assert_eq(graph_specialise(g, &(graph_binding){.inputs = inputs}, evaluate, &made),
                 STATUS_OK, "%s", status_message());
    return made;
}

static void expect_output(const graph *g, int i, const char *name, int rank, const int64_t *dims)
{
    const graph_value *v = &g->values[g->outputs[i]];
    cr_expect_str_eq(v->name, name);
    cr_expect_eq(v->shape.rank, rank);
    for (int d = 0; d < rank; d++)
        cr_expect(graph_dim_equal(v->shape.dims[d], graph_dim_constant(dims[d])), "dim %d is %lld",
                  d, (long long)v->shape.dims[d].constant);
}

Test(specialise, shape_arithmetic_vanishes)
{
    graph *g = graph_create("merge heads");
    graph_value_index x = add_x(g);
    graph_value_index rows =
        apply(g, GRAPH_OP_MUL, dim_of(g, x, 0), dim_of(g, x, 1)); /* B*S, as a list of one */
    graph_value_index target =
        graph_add(g, GRAPH_OP_CONCAT, 2, (graph_value_index[]){rows, list(g, 8)}, 1,
                  (graph_attribute[]){graph_make_int("axis", 0)});
    graph_value_index flat = apply(g, GRAPH_OP_RESHAPE, x, target);
    graph_add_output(g, apply(g, GRAPH_OP_RELU, flat, GRAPH_NO_VALUE), "y");

    graph *made = specialise_at(g, 3, 5);
    cr_expect_eq(made->node_count, 2);
    cr_expect_eq(made->nodes[0].op, GRAPH_OP_RESHAPE);
    expect_output(made, 0, "y", 2, (int64_t[]){15, 8});
    cr_expect_eq(made->input_count, 1);
    cr_expect_str_eq(made->values[made->inputs[0]].name, "x");
    graph_destroy(made);

    cr_assert_eq(graph_infer_symbolic(g, NULL, evaluate), STATUS_OK, "%s", status_message());
    const graph_shape *y = &g->values[g->outputs[0]].shape;
    cr_expect_eq(y->rank, 2);
    cr_expect(graph_dim_equal(y->dims[0], (graph_dim){.batch_sequence = 1}));
    cr_expect(graph_dim_equal(y->dims[1], graph_dim_constant(8)));
    graph_destroy(g);
}

Test(specialise, views_and_casts_to_the_same_type_are_aliases_and_outputs_keep_their_names)
{
    graph *g = graph_create("aliases");
    graph_value_index x = add_x(g);
    graph_value_index same =
        graph_add(g, GRAPH_OP_CAST, 1, &x, 1, (graph_attribute[]){graph_make_int("to", 1)});
    graph_value_index relu = apply(g, GRAPH_OP_RELU, same, GRAPH_NO_VALUE);
    graph_value_index copy = apply(g, GRAPH_OP_IDENTITY, relu, GRAPH_NO_VALUE);
    graph_value_index through = apply(g, GRAPH_OP_IDENTITY, x, GRAPH_NO_VALUE);
    graph_add_output(g, relu, "first");
    graph_add_output(g, copy, "second");
    graph_add_output(g, through, "third");
    graph *made = specialise_at(g, 2, 4);
    const int64_t dims[] = {2, 4, 8};
    expect_output(made, 0, "first", 3, dims);
    expect_output(made, 1, "second", 3, dims);
    expect_output(made, 2, "third", 3, dims);
    /* Relu, and one Identity for each output that would share a value. */
    cr_expect_eq(made->node_count, 3);
    cr_expect_eq(made->nodes[0].op, GRAPH_OP_RELU);
    cr_expect_eq(made->nodes[0].inputs[0], made->inputs[0]);
    graph_destroy(made);
    graph_destroy(g);
}

Test(specialise, dead_nodes_are_not_even_looked_at)
{
    graph *g = graph_create("dead");
    graph_value_index x = add_x(g);
    apply(g, GRAPH_OP_NON_ZERO, x, GRAPH_NO_VALUE); /* would need the value */
    graph_add_output(g, apply(g, GRAPH_OP_RELU, x, GRAPH_NO_VALUE), "y");
    graph *made = specialise_at(g, 1, 1);
    cr_expect_eq(made->node_count, 1);
    graph_destroy(made);
    graph_destroy(g);
}

Test(specialise, a_shape_that_needs_an_input_names_it_and_binding_it_helps)
{
    graph *g = graph_create("dynamic");
    graph_value_index x = add_x(g);
    graph_value_index k =
        graph_add_input(g, "k", DTYPE_I64, 1, (graph_dim[]){graph_dim_constant(1)});
    graph_value_index twice = apply(g, GRAPH_OP_MUL, k, list(g, 2));
    int32_t top =
        graph_add_node(g, GRAPH_OP_TOP_K, NULL, 2, (graph_value_index[]){x, twice}, 2, 0, NULL);
    graph_add_output(g, g->nodes[top].outputs[0], "values");
    tensor inputs[2] = {0};
    cr_assert_eq(graph_bind(g, 2, 3, inputs), STATUS_OK);
    graph *made = NULL;
    graph_binding binding = {.inputs = inputs};
    cr_expect_eq(graph_specialise(g, &binding, evaluate, &made), STATUS_UNSUPPORTED);
    cr_expect(strstr(status_message(), "bind input \"k\"") != NULL, "%s", status_message());
    int64_t three = 3;
    inputs[1].data = &three;
    cr_assert_eq(graph_specialise(g, &binding, evaluate, &made), STATUS_OK, "%s", status_message());
    expect_output(made, 0, "values", 3, (int64_t[]){2, 3, 6});
    cr_expect_eq(made->input_count, 2);
    cr_expect(made->values[made->inputs[1]].constant != NULL);
    cr_expect_eq(made->nodes[0].outputs[1], GRAPH_NO_VALUE, "the unread output is computed");
    graph_destroy(made);
    graph_destroy(g);
}

Test(specialise, constants_that_only_repeat_a_value_stay_nodes_unless_a_shape_needs_them)
{
    graph *g = graph_create("large");
    graph_value_index x = graph_add_input(g, "x", DTYPE_F32, 1, &batch);
    graph_value_index zeros = apply(g, GRAPH_OP_CONSTANT_OF_SHAPE, list(g, 100000), GRAPH_NO_VALUE);
    graph_value_index few = apply(g, GRAPH_OP_CONSTANT_OF_SHAPE, list(g, 10), GRAPH_NO_VALUE);
    graph_value_index seen = apply(g, GRAPH_OP_NON_ZERO, zeros, GRAPH_NO_VALUE);
    (void)x;
    graph_add_output(g, apply(g, GRAPH_OP_RELU, zeros, GRAPH_NO_VALUE), "zeros");
    graph_add_output(g, apply(g, GRAPH_OP_RELU, few, GRAPH_NO_VALUE), "few");
    graph *made = specialise_at(g, 1, 1);
    cr_expect_eq(made->node_count, 3); /* ConstantOfShape, Relu, Relu */
    cr_expect_eq(made->nodes[0].op, GRAPH_OP_CONSTANT_OF_SHAPE);
    graph_destroy(made);

    graph_add_output(g, apply(g, GRAPH_OP_SHAPE, seen, GRAPH_NO_VALUE), "counts");
    evaluations = 0;
    made = specialise_at(g, 1, 1);
    cr_expect_eq(made->values[made->outputs[2]].shape.rank, 1);
    for (int32_t n = 0; n < made->node_count; n++)
        cr_expect_neq(made->nodes[n].op, GRAPH_OP_CONSTANT_OF_SHAPE);
    graph_destroy(made);
    graph_destroy(g);
}

Test(specialise, what_depends_on_constants_alone_is_folded_once_in_the_source)
{
    graph *g = graph_create("weights");
    graph_value_index x = graph_add_input(g, "x", DTYPE_F32, 1, &batch);
    float scale = 2;
    int64_t one = 1;
    graph_value_index whole = graph_add_constant_i64(g, "w", 1, &one, &one);
    graph_value_index weights =
        graph_add(g, GRAPH_OP_CAST, 1, &whole, 1, (graph_attribute[]){graph_make_int("to", 1)});
    graph_value_index scaled =
        apply(g, GRAPH_OP_MUL, weights, graph_add_constant_f32(g, "s", 1, &one, &scale));
    graph_add_output(g, apply(g, GRAPH_OP_ADD, x, scaled), "y");
    graph_fold_constants(g, NULL, evaluate);
    cr_expect_eq(g->node_count, 1);
    cr_expect_eq(g->values[g->outputs[0]].producer, 0);
    cr_assert(g->values[scaled].constant != NULL);
    cr_expect_eq(tensor_get_number(g->values[scaled].constant, 0), 2);
    graph *made = specialise_at(g, 4, 0);
    cr_assert_eq(made->node_count, 1);
    const tensor *shared = made->values[made->nodes[0].inputs[1]].constant;
    cr_expect_eq(shared->data, g->values[scaled].constant->data, "a bucket has its own copy");
    graph_destroy(made);
    graph_destroy(g);
}

Test(specialise, misfits_name_the_node_and_both_shapes)
{
    graph *g = graph_create("misfit");
    graph_value_index x = add_x(g);
    float ones[3] = {1, 1, 1};
    graph_value_index three = graph_add_constant_f32(g, "three", 1, (int64_t[]){3}, ones);
    graph_value_index y;
    int32_t add =
        graph_add_node(g, GRAPH_OP_ADD, "the sum", 2, (graph_value_index[]){x, three}, 1, 0, NULL);
    y = g->nodes[add].outputs[0];
    graph_add_output(g, y, "y");
    tensor inputs[1];
    graph *made = NULL;
    cr_assert_eq(graph_bind(g, 2, 5, inputs), STATUS_OK);
    cr_expect_eq(graph_specialise(g, &(graph_binding){.inputs = inputs}, evaluate, &made),
                 STATUS_INVALID_ARGUMENT);
    cr_expect(strstr(status_message(), "the sum") && strstr(status_message(), "[2,5,8]") &&
                  strstr(status_message(), "[3]"),
              "%s", status_message());
    cr_expect_null(made);
    graph_destroy(g);
}

Test(specialise, symbolic_shapes_are_unknown_where_no_polynomial_fits)
{
    graph *g = graph_create("nonlinear");
    graph_value_index x = add_x(g);
    graph_value_index s = dim_of(g, x, 1), square = apply(g, GRAPH_OP_MUL, s, s);
    graph_value_index y = apply(g, GRAPH_OP_CONSTANT_OF_SHAPE, square, GRAPH_NO_VALUE);
    graph_add_output(g, y, "squares");
    graph_value_index z =
        graph_add(g, GRAPH_OP_SHAPE, 1, &x, 0, NULL); /* its own shape does not vary */
    graph_add_output(g, z, "shape");
    cr_assert_eq(graph_infer_symbolic(g, NULL, evaluate), STATUS_OK, "%s", status_message());
    cr_expect(g->values[g->outputs[0]].shape.dims[0].is_unknown);
    cr_expect(graph_dim_equal(g->values[g->outputs[1]].shape.dims[0], graph_dim_constant(3)));
    cr_expect_eq(g->values[g->outputs[1]].dtype, DTYPE_I64);
    graph_destroy(g);
}

/* What more rows tell does not hold for one. */
Test(specialise, symbolic_shapes_are_unknown_where_one_row_has_others)
{
    graph *g = graph_create("one row");
    const graph_dim dims[] = {batch, graph_dim_constant(8)};
    graph_value_index x = graph_add_input(g, "x", DTYPE_F32, 2, dims);
    graph_value_index first[] = {x, list(g, 0), list(g, 2)};
    graph_add_output(g, graph_add(g, GRAPH_OP_SLICE, 3, first, 0, NULL), "first two");
    graph_add_output(g, apply(g, GRAPH_OP_SQUEEZE, x, GRAPH_NO_VALUE), "squeezed");
    cr_assert_eq(graph_infer_symbolic(g, NULL, evaluate), STATUS_OK, "%s", status_message());
    const graph_shape *two = &g->values[g->outputs[0]].shape;
    cr_expect(two->rank == 2 && two->dims[0].is_unknown && !two->dims[1].is_unknown);
    cr_expect_eq(g->values[g->outputs[1]].shape.rank, -1);
    graph_destroy(g);
}

Test(specialise, binding_rejects_what_it_cannot_fill)
{
    graph *g = graph_create("bind");
    graph_add_input(g, "x", DTYPE_F32, 2, (graph_dim[]){batch, {.is_unknown = true}});
    tensor inputs[1];
    cr_expect_eq(graph_bind(g, 1, 1, inputs), STATUS_INVALID_ARGUMENT);
    cr_expect(strstr(status_message(), "\"x\"") != NULL);
    graph_destroy(g);
    g = graph_create("bind");
    graph_add_input(g, "x", DTYPE_F32, 2, (graph_dim[]){batch, sequence});
    cr_expect_eq(graph_bind(g, -1, 1, inputs), STATUS_INVALID_ARGUMENT);
    cr_expect_eq(graph_bind(g, (int64_t)1 << 40, (int64_t)1 << 40, inputs), STATUS_TOO_LARGE);
    graph_destroy(g);
}

/* If(dim 1 of x == 1): Squeeze(x), else Relu(x), as PyTorch writes x.squeeze(1). */
static graph *make_squeeze_if(graph_value_index (*condition)(graph *g, graph_value_index x))
{
    graph *g = graph_create("squeeze");
    graph_value_index x = add_x(g), c = condition(g, x);
    graph_value_index inputs[] = {c, apply(g, GRAPH_OP_SQUEEZE, x, list(g, 1)),
                                  apply(g, GRAPH_OP_RELU, x, GRAPH_NO_VALUE)};
    graph_value_index y = graph_add(g, GRAPH_OP_IF, 3, inputs, 0, NULL);
    graph_add_output(g, y, "y");
    graph_add_output(g, apply(g, GRAPH_OP_NEG, y, GRAPH_NO_VALUE), "z");
    return g;
}

static graph_value_index has_length_one(graph *g, graph_value_index x)
{
    graph_value_index less = apply(g, GRAPH_OP_SUB, dim_of(g, x, 1), list(g, 1));
    graph_attribute to = graph_make_int("to", dtype_to_onnx(DTYPE_BOOL));
    graph_value_index other = graph_add(g, GRAPH_OP_CAST, 1, &less, 1, &to);
    return apply(g, GRAPH_OP_NOT, other, GRAPH_NO_VALUE);
}

static graph_value_index of_the_request(graph *g, graph_value_index x)
{
    return apply(g, GRAPH_OP_IS_NAN, x, GRAPH_NO_VALUE);
}

static graph_value_index never(graph *g, graph_value_index x)
{
    (void)x;
    tensor t = {0};
    cr_assert_eq(tensor_allocate(&t, &g->memory, DTYPE_BOOL, 0, NULL), STATUS_OK);
    *(bool *)t.data = true;
    return graph_add_constant(g, "yes", &t);
}

Test(specialise, an_if_takes_the_branch_that_the_shapes_tell)
{
    graph *g = make_squeeze_if(has_length_one);
    graph *made = specialise_at(g, 2, 1);
    cr_expect_eq(made->node_count, 2);
    cr_expect_eq(made->nodes[0].op, GRAPH_OP_SQUEEZE);
    expect_output(made, 0, "y", 2, (int64_t[]){2, 8});
    expect_output(made, 1, "z", 2, (int64_t[]){2, 8});
    graph_destroy(made);
    /* Squeeze does not fit here, and nobody needs it. */
    made = specialise_at(g, 2, 5);
    cr_expect_eq(made->node_count, 2);
    cr_expect_eq(made->nodes[0].op, GRAPH_OP_RELU);
    expect_output(made, 1, "z", 3, (int64_t[]){2, 5, 8});
    graph_destroy(made);
    graph_destroy(g);
}

static void expect_rejection(graph *g, status code, const char *word)
{
    tensor inputs[8] = {0};
    graph *made = NULL;
    cr_assert_eq(graph_bind(g, 2, 5, inputs), STATUS_OK);
    status s = graph_specialise(g, &(graph_binding){.inputs = inputs}, evaluate, &made);
    cr_assert_eq(s, code, "%s", status_message());
    cr_assert_not_null(strstr(status_message(), word), "%s", status_message());
    graph_destroy(g);
}

Test(specialise, an_if_that_depends_on_values_is_rejected)
{
    expect_rejection(make_squeeze_if(of_the_request), STATUS_UNSUPPORTED, "condition");
}

Test(specialise, the_branch_taken_must_fit)
{
    expect_rejection(make_squeeze_if(never), STATUS_INVALID_ARGUMENT, "Squeeze");
}

/* An If on values has the shape of both its branches; what depends on values has none; what lies
 * before and behind them is as in any specialised graph. */
Test(graph_specialise, partly_where_shapes_depend_on_values)
{
    graph *g = graph_create("g"), *made;
    graph_dim any = {.is_unknown = true};
    graph_value_index x = graph_add_input(g, "x", DTYPE_F32, 1, &any);
    graph_value_index c = graph_add_input(g, "c", DTYPE_BOOL, 0, NULL);
    graph_value_index a = graph_add(g, GRAPH_OP_NEG, 1, &x, 0, NULL);
    graph_value_index b = graph_add(g, GRAPH_OP_SQRT, 1, &x, 0, NULL);
    graph_value_index some = graph_add(g, GRAPH_OP_IF, 3, (graph_value_index[]){c, a, b}, 0, NULL);
    graph_value_index found = graph_add(g, GRAPH_OP_NON_ZERO, 1, &a, 0, NULL);
    graph_add_output(g, graph_add(g, GRAPH_OP_NEG, 1, &some, 0, NULL), "same");
    graph_add_output(g, graph_add(g, GRAPH_OP_NEG, 1, &found, 0, NULL), "unknown");
    tensor shapes[] = {{.dtype = DTYPE_F32, .rank = 1, .dims = {7}}, {.dtype = DTYPE_BOOL}};
    cr_assert_eq(graph_specialise_partly(g, &(graph_binding){.inputs = shapes}, evaluate, &made),
                 STATUS_OK);
    const graph_value *same = &made->values[made->outputs[0]];
    const graph_value *unknown = &made->values[made->outputs[1]];
    cr_expect_eq(made->node_count, g->node_count);
    cr_expect_eq(same->shape.rank, 1);
    cr_expect_eq(same->shape.dims[0].constant, 7);
    cr_expect(!unknown->has_dtype);
    cr_expect_eq(unknown->shape.rank, -1);
    graph_destroy(made);
    cr_expect_eq(graph_specialise(g, &(graph_binding){.inputs = shapes}, evaluate, &made),
                 STATUS_UNSUPPORTED);
    graph_destroy(g);
}
