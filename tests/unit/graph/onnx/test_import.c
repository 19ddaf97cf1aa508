#include "tests/unit/graph/onnx/builder.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static onnx_builder *begin_relu(void)
{
    onnx_builder *b = onnx_begin(17);
    onnx_add_input(b, "x", NAMES("batch", "8"));
    onnx_add(b, "Relu", NAMES("x"), NAMES("y"));
    onnx_add_output(b, "y");
    return b;
}

Test(import_onnx, keeps_names_source_and_symbols)
{
    graph *g = onnx_expect(begin_relu());
    char text[64];
    cr_assert_str_eq(g->source, "onnx opset 17 by penstock-tests");
    cr_assert_eq(g->input_count, 1);
    cr_assert_str_eq(g->values[g->inputs[0]].name, "x");
    cr_assert_str_eq(graph_dim_text(text, g->values[g->inputs[0]].shape.dims[0]), "batch");
    cr_assert_str_eq(graph_dim_text(text, g->values[g->inputs[0]].shape.dims[1]), "8");
    cr_assert_str_eq(g->values[g->outputs[0]].name, "y");
    graph_destroy(g);
}

static void check_dims(const graph *g, int input, const char *want)
{
    char text[500] = "", dim[64];
    const graph_shape *shape = &g->values[g->inputs[input]].shape;
    for (int i = 0; i < shape->rank; i++) {
        strcat(text, i ? " " : "");
        strcat(text, graph_dim_text(dim, shape->dims[i]));
    }
    cr_assert_str_eq(text, want);
}

Test(import_onnx, relates_symbols_of_any_name_to_batch_and_sequence)
{
    static const struct {
        const char *dims[2][5], *want[2];
    } cases[] = {
        {{{"batch_size", "seq_len"}, {"batch_size", "seq_len"}},
         {"batch sequence", "batch sequence"}},
        {{{"unk__1", "unk__2"}, {"unk__3", "unk__2"}}, {"batch sequence", "batch sequence"}},
        {{{"?", "?"}, {"?", "?", "4"}}, {"batch sequence", "batch sequence 4"}},
        {{{"N", "3", "32", "32"}, {"N"}}, {"batch 3 32 32", "batch"}},
        {{{"1", "s0"}, {"1", "s0"}}, {"1 sequence", "1 sequence"}},
        {{{"s0", "s1"}, {"s0", "1", "s1", "s1"}}, {"batch sequence", "batch 1 sequence sequence"}},
        {{{"N", "3", "H", "W"}, {"N"}}, {"batch 3 ? ?", "batch"}},
        {{{"b", "s"}, {"b", "other"}}, {"batch sequence", "batch ?"}},
        {{{"b", "s"}, {"s", "2"}}, {"batch sequence", "sequence 2"}},
        {{{"2", "7"}, {"2"}}, {"2 7", "2"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onnx_builder *b = onnx_begin(17);
        onnx_add_input(b, "x", cases[i].dims[0]);
        onnx_add_input(b, "z", cases[i].dims[1]);
        onnx_add(b, "Relu", NAMES("x"), NAMES("y"));
        onnx_add_output(b, "y");
        graph *g = onnx_expect(b);
        check_dims(g, 0, cases[i].want[0]);
        check_dims(g, 1, cases[i].want[1]);
        graph_destroy(g);
    }
}

Test(import_onnx, fixes_named_dims_when_asked)
{
    onnx_builder *b = onnx_begin(17);
    onnx_add_input(b, "x", NAMES("N", "3", "H", "W"));
    onnx_add(b, "Relu", NAMES("x"), NAMES("y"));
    onnx_add_output(b, "y");
    graph_fixed_dim fixed[] = {{"H", 20}, {"W", 30}};
    graph_import_options options = {.fixed_dims = fixed, .fixed_dim_count = 2};
    size_t bytes;
    uint8_t *data = onnx_pack(b, &bytes);
    graph *g;
    cr_assert_eq(graph_import_onnx_bytes(data, bytes, NULL, &options, &g), STATUS_OK);
    check_dims(g, 0, "batch 3 20 30");
    const char *const *names = g->values[g->inputs[0]].dim_names;
    cr_assert_str_eq(names[0], "N");
    cr_assert_null(names[2]); /* constant now */
    graph_destroy(g);
}

Test(import_onnx, fixes_dims_without_a_name_by_their_place)
{
    onnx_builder *b = onnx_begin(17);
    onnx_add_input(b, "x", NAMES("N", "3", "?", "W"));
    onnx_add_input(b, "z", NAMES("N", "3", "?", "W"));
    onnx_set_int(onnx_add(b, "Concat", NAMES("x", "z"), NAMES("y")), "axis", 2);
    onnx_add_output(b, "y");
    graph_fixed_dim fixed[] = {{"x[2]", 20}, {"W", 30}};
    graph_import_options options = {.fixed_dims = fixed, .fixed_dim_count = 2};
    size_t bytes;
    uint8_t *data = onnx_pack(b, &bytes);
    graph *g;
    cr_assert_eq(graph_import_onnx_bytes(data, bytes, NULL, &options, &g), STATUS_OK, "%s",
                 status_message());
    check_dims(g, 0, "batch 3 20 30");
    check_dims(g, 1, "batch 3 ? 30");
    graph_destroy(g);
}

Test(import_onnx, fixed_dims_that_no_input_has_are_refused)
{
    onnx_builder *b = onnx_begin(17);
    onnx_add_input(b, "x", NAMES("N", "3", "height", "width"));
    onnx_add(b, "Relu", NAMES("x"), NAMES("y"));
    onnx_add_output(b, "y");
    graph_fixed_dim fixed[] = {{"hieght", 20}};
    graph_import_options options = {.fixed_dims = fixed, .fixed_dim_count = 1};
    size_t bytes;
    uint8_t *data = onnx_pack(b, &bytes);
    graph *g = NULL;
    cr_assert_eq(graph_import_onnx_bytes(data, bytes, NULL, &options, &g), STATUS_INVALID_ARGUMENT);
    cr_assert_null(g);
    cr_assert_str_eq(status_message(),
                     "dims: no input has an open dim named \"hieght\" (did you mean \"height\"?); "
                     "open dims: \"N\", \"height\", \"width\"");
}

Test(import_onnx, sorts_nodes_and_keeps_a_sorted_order)
{
    onnx_builder *b = onnx_begin(17);
    onnx_add_input(b, "x", NAMES("batch", "8"));
    onnx_add(b, "Add", NAMES("r", "t"), NAMES("y"));
    onnx_add(b, "Tanh", NAMES("r"), NAMES("t"));
    onnx_add(b, "Relu", NAMES("x"), NAMES("r"));
    onnx_add(b, "Abs", NAMES("y"), NAMES("z"));
    onnx_add_output(b, "z");
    graph *g = onnx_expect(b);
    cr_assert_str_eq(onnx_operators(g), "Relu Tanh Add Abs");
    graph_destroy(g);
}

Test(import_onnx, rejects_cycles_duplicates_and_dangling_names)
{
    onnx_builder *b = begin_relu();
    onnx_add(b, "Add", NAMES("x", "q"), NAMES("p"));
    onnx_add(b, "Tanh", NAMES("p"), NAMES("q"));
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("depends on itself"));

    b = begin_relu();
    onnx_add(b, "Tanh", NAMES("x"), NAMES("y"));
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("'y'"));
    b = begin_relu();
    onnx_add(b, "Tanh", NAMES("x"), NAMES("x"));
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("'x'"));
    b = begin_relu();
    onnx_add(b, "Tanh", NAMES("nothing"), NAMES("t"));
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("'nothing'", "Tanh", "opset 17"));
    b = begin_relu();
    onnx_add_output(b, "nothing");
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("'nothing'"));
    b = begin_relu();
    onnx_add_output(b, "y");
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("twice"));
    b = begin_relu();
    onnx_add_input(b, "x", NAMES("1"));
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("twice"));
    b = begin_relu();
    onnx_add_floats(b, "w", 1, &(float){1});
    onnx_add_floats(b, "w", 1, &(float){1});
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("'w'", "twice"));
}

Test(import_onnx, an_input_with_an_initialiser_is_a_constant)
{
    onnx_builder *b = onnx_begin(17);
    onnx_add_input(b, "x", NAMES("batch", "1"));
    onnx_add_input(b, "w", NAMES("1"));
    onnx_add_floats(b, "w", 1, &(float){2});
    onnx_add(b, "Mul", NAMES("x", "w"), NAMES("y"));
    onnx_add_output(b, "y");
    graph *g = onnx_expect(b);
    cr_assert_eq(g->input_count, 1);
    cr_assert_str_eq(onnx_constant_text(g, g->nodes[0].inputs[1]), "2");
    graph_destroy(g);
}

Test(import_onnx, outputs_may_be_inputs_and_constants)
{
    onnx_builder *b = onnx_begin(17);
    onnx_add_input(b, "x", NAMES("batch", "1"));
    onnx_add_floats(b, "w", 1, &(float){2});
    onnx_add_output(b, "x");
    onnx_add_output(b, "w");
    graph *g = onnx_expect(b);
    cr_assert_str_eq(g->values[g->outputs[0]].name, "x");
    cr_assert_str_eq(g->values[g->outputs[1]].name, "w");
    graph_destroy(g);
}

Test(import_onnx, rejects_an_unknown_operator_by_name)
{
    onnx_builder *b = begin_relu();
    onnx_add(b, "Reluu", NAMES("y"), NAMES("z"))->name = "encoder/odd";
    onnx_expect_failure(b, STATUS_UNSUPPORTED,
                        NAMES("'encoder/odd'", "Reluu", "opset 17", "nearest", "Relu"));
    b = begin_relu();
    onnx_import_domain(b, "com.microsoft", 1);
    onnx_add(b, "MatMulNBits", NAMES("y"), NAMES("z"))->domain = "com.microsoft";
    onnx_expect_failure(b, STATUS_UNSUPPORTED,
                        NAMES("com.microsoft::MatMulNBits", "opset 1)", "FusedMatMul"));
    b = begin_relu();
    onnx_import_domain(b, "ai.onnx.ml", 3);
    onnx_add(b, "DictVectorizer", NAMES("y"), NAMES("z"))->domain = "ai.onnx.ml";
    onnx_expect_failure(b, STATUS_UNSUPPORTED,
                        NAMES("ai.onnx.ml::DictVectorizer", "opset 3)",
                              "operators of ai.onnx.ml: ", "TreeEnsembleRegressor"));
    cr_assert_eq(strstr(status_message(), "com.microsoft"), NULL, "%s", status_message());
    b = begin_relu();
    onnx_import_domain(b, "my.own", 2);
    onnx_add(b, "Mystery", NAMES("y"), NAMES("z"))->domain = "my.own";
    onnx_expect_failure(b, STATUS_UNSUPPORTED,
                        NAMES("my.own::Mystery", "com.microsoft and ai.onnx.ml"));
    b = begin_relu();
    onnx_add(b, "Mystery", NAMES("y"), NAMES("z"))->domain = "my.own";
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("Mystery", "my.own"));
}

Test(import_onnx, rejects_unknown_attributes_and_wrong_ones)
{
    onnx_builder *b = begin_relu();
    Onnx__Node *n = onnx_add(b, "Concat", NAMES("y", "y"), NAMES("z"));
    onnx_set_int(n, "axis", 1);
    onnx_set_int(n, "colour", 1);
    onnx_expect_failure(b, STATUS_UNSUPPORTED,
                        NAMES("'z'", "Concat", "opset 17", "'colour'", "supported: axis"));
    b = begin_relu();
    onnx_add(b, "Concat", NAMES("y", "y"), NAMES("z"));
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("Concat", "'axis' is missing"));
    b = begin_relu();
    n = onnx_add(b, "Concat", NAMES("y", "y"), NAMES("z"));
    onnx_set_float(n, "axis", 1);
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("'axis' must be an int"));
    b = begin_relu();
    n = onnx_add(b, "Concat", NAMES("y", "y"), NAMES("z"));
    onnx_set_int(n, "axis", 1);
    onnx_set_int(n, "axis", 2);
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("'axis' is given twice"));
    b = begin_relu();
    onnx_add(b, "Add", NAMES("y"), NAMES("z"));
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("Add", "1 inputs"));
    b = begin_relu();
    onnx_add(b, "Add", NAMES("", "y"), NAMES("z"));
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("Add", "input 0 is missing"));
}

Test(import_onnx, accepts_absent_optional_inputs)
{
    onnx_builder *b = begin_relu();
    onnx_add_floats(b, "six", 1, &(float){6});
    onnx_add(b, "Clip", NAMES("y", "", "six"), NAMES("z"));
    onnx_add(b, "Clip", NAMES("z", "", ""), NAMES("last"));
    graph *g = onnx_expect(b);
    cr_assert_eq(g->nodes[1].input_count, 3);
    cr_assert_eq(g->nodes[1].inputs[1], GRAPH_NO_VALUE);
    cr_assert_eq(g->nodes[2].input_count, 1, "trailing absent inputs are dropped");
    graph_destroy(g);
}

Test(import_onnx, rejects_versions_it_does_not_know)
{
    onnx_builder *b = begin_relu();
    b->opset.version = 6;
    onnx_expect_failure(b, STATUS_UNSUPPORTED, NAMES("opset 6"));
    b->opset.version = 99;
    onnx_expect_failure(b, STATUS_UNSUPPORTED, NAMES("opset 99", "export the model again"));
    b->opset.version = 17;
    b->model.ir_version = 2;
    onnx_expect_failure(b, STATUS_UNSUPPORTED, NAMES("IR version 2"));
    b->model.ir_version = 8;
    b->model.n_opset_import = 0;
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("opset"));
    b->model.n_opset_import = 1;
    b->model.graph = NULL;
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("without a graph"));
}

Test(import_onnx, an_empty_file_is_called_that)
{
    graph *g = NULL;
    cr_assert_eq(graph_import_onnx_bytes((const uint8_t *)"", 0, NULL, NULL, &g), STATUS_CORRUPT);
    cr_assert_not_null(strstr(status_message(), "the file is empty"), "%s", status_message());
}

Test(import_onnx, rejects_inputs_that_are_no_tensors)
{
    onnx_builder *b = begin_relu();
    b->graph.input[0]->type->tensor_type->elem_type = 22;
    onnx_expect_failure(b, STATUS_UNSUPPORTED, NAMES("'x'", "INT4"));
    b->graph.input[0]->type->tensor_type->elem_type = 1;
    b->graph.input[0]->type->tensor_type->shape = NULL;
    onnx_expect_failure(b, STATUS_UNSUPPORTED, NAMES("'x'", "without a shape"));
    b->graph.input[0]->type->tensor_type = NULL;
    onnx_expect_failure(b, STATUS_UNSUPPORTED, NAMES("'x'", "dense tensor"));
}

Test(import_onnx, keeps_to_its_ceilings)
{
    onnx_builder *b = begin_relu();
    onnx_add(b, "Relu", NAMES("y"), NAMES("z"));
    size_t bytes;
    uint8_t *data = onnx_pack(b, &bytes);
    graph *g = NULL;
    graph_import_options options = {.nodes_max = 1};
    cr_assert_eq(graph_import_onnx_bytes(data, bytes, NULL, &options, &g), STATUS_TOO_LARGE);
    options.nodes_max = 2;
    cr_assert_eq(graph_import_onnx_bytes(data, bytes, NULL, &options, &g), STATUS_OK);
    graph_destroy(g);
}

Test(import_onnx, rejects_deep_nesting_before_parsing)
{
    /* graph { node { attribute { g { node { ... : a recursive parser would run out of stack. */
    enum { DEPTH = 200000, BYTES_PER_LEVEL = 5 };
    static const uint8_t tags[] = {0x0a, 0x2a, 0x32}; /* node = 1, attribute = 5, g = 6 */
    size_t bytes = 0, room = (size_t)DEPTH * BYTES_PER_LEVEL;
    uint8_t *end = malloc(room), *at = end + room;
    for (int i = DEPTH - 1; i >= 0; i--) {
        uint8_t length[5];
        int n = 0;
        for (size_t left = bytes; n == 0 || left > 0; left >>= 7)
            length[n++] = (uint8_t)((left & 127) | (left > 127 ? 128 : 0));
        at -= n;
        memcpy(at, length, (size_t)n);
        *--at = i == 0 ? 0x3a : tags[(i + 2) % 3];
        bytes += (size_t)n + 1;
    }
    graph *g = NULL;
    cr_assert_eq(graph_import_onnx_bytes(at, bytes, NULL, NULL, &g), STATUS_CORRUPT);
    cr_assert(strstr(status_message(), "deeper") != NULL, "%s", status_message());
    free(end);
}

/* A model with every kind of thing in it: for cutting and flipping. */
static uint8_t *pack_everything(size_t *bytes)
{
    onnx_builder *b = onnx_begin(17);
    int64_t axes[] = {1}, shape[] = {0, -1};
    onnx_import_domain(b, "my.own", 1);
    onnx_add_input(b, "x", NAMES("batch", "sequence", "4"));
    onnx_add_ints(b, "axes", 1, axes);
    onnx_add_ints(b, "shape", 2, shape);
    onnx_add_floats(b, "w", 4, (float[]){1, 2, 3, 4});
    Onnx__Node *body[] = {onnx_make_node("LeakyRelu", NAMES("a"), NAMES("b")),
                          onnx_make_node("Mul", NAMES("b", "a"), NAMES("c"))};
    onnx_set_reference(body[0], "alpha", ONNX__ATTRIBUTE__TYPE__FLOAT, "slope");
    Onnx__Function *f = onnx_add_function(b, "my.own", "Odd", NAMES("a"), NAMES("c"), 2, body);
    f->opset_import = b->opsets;
    f->n_opset_import = 1;
    Onnx__Node *call = onnx_add(b, "Odd", NAMES("x"), NAMES("o"));
    call->domain = "my.own";
    onnx_set_float(call, "slope", 0.5f);
    onnx_add(b, "Mul", NAMES("o", "w"), NAMES("m"));
    onnx_add(b, "Unsqueeze", NAMES("m", "axes"), NAMES("u"));
    onnx_add(b, "Reshape", NAMES("u", "shape"), NAMES("y"));
    Onnx__Node *constant = onnx_add(b, "Constant", NAMES(NULL), NAMES("k"));
    onnx_set_ints(constant, "value_ints", 1, axes);
    onnx_add_output(b, "y");
    onnx_add_output(b, "k");
    return onnx_pack(b, bytes);
}

Test(import_onnx, never_crashes_on_a_file_cut_anywhere)
{
    size_t bytes;
    uint8_t *data = pack_everything(&bytes);
    graph *g = NULL;
    cr_assert_eq(graph_import_onnx_bytes(data, bytes, NULL, NULL, &g), STATUS_OK, "%s",
                 status_message());
    graph_destroy(g);
    int failures = 0;
    for (size_t n = 0; n < bytes; n++) {
        uint8_t *cut = malloc(n + 1); /* its own block, for the sanitiser to guard */
        memcpy(cut, data, n);
        cut = realloc(cut, n ? n : 1);
        status s = graph_import_onnx_bytes(cut, n, NULL, NULL, &g);
        if (s == STATUS_OK)
            graph_destroy(g);
        failures += s != STATUS_OK;
        free(cut);
    }
    cr_assert_gt(failures, (int)bytes * 9 / 10);
}

Test(import_onnx, never_crashes_on_flipped_bits)
{
    size_t bytes;
    uint8_t *data = pack_everything(&bytes);
    for (size_t i = 0; i < bytes * 8 + 4000; i++) {
        uint8_t *changed = malloc(bytes);
        memcpy(changed, data, bytes);
        changed[i / 8 % bytes] ^= (uint8_t)(1 << (i & 7));
        if (i >= bytes * 8) { /* then two places at once */
            changed[i * 2654435761u % bytes] = (uint8_t)(i * 40503u >> 7);
            changed[i * 2246822519u % bytes] ^= (uint8_t)(i >> 3);
        }
        graph *g = NULL;
        if (graph_import_onnx_bytes(changed, bytes, NULL, NULL, &g) == STATUS_OK)
            graph_destroy(g);
        free(changed);
    }
}
