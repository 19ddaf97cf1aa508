#include "tests/unit/graph/onnx/builder.h"

#include <criterion/criterion.h>
#include <string.h>

/* Every element type, as bytes and in its typed field; and Constant in all its forms. */

static graph *import_tensor(Onnx__Tensor *t)
{
    onnx_builder *b = onnx_begin(17);
    onnx_add_tensor(b, t);
    onnx_add(b, "Identity", NAMES("w"), NAMES("y"));
    onnx_add_output(b, "y");
    return onnx_expect(b);
}

static void check_tensor(Onnx__Tensor *t, dtype type, const char *want)
{
    graph *g = import_tensor(t);
    const tensor *made = g->values[g->nodes[0].inputs[0]].constant;
    cr_assert_eq(made->dtype, type);
    cr_assert_str_eq(onnx_constant_text(g, g->nodes[0].inputs[0]), want, "%s", dtype_name(type));
    graph_destroy(g);
}

Test(import_onnx_tensors, reads_raw_bytes_of_every_type)
{
    int64_t dims[] = {3};
    for (int type = 0; type < DTYPE_BYTES; type++) {
        tensor t;
        arena a = {0};
        cr_assert_eq(tensor_allocate(&t, &a, (dtype)type, 1, dims), STATUS_OK);
        for (int i = 0; i < 3; i++)
            tensor_set_number(&t, i, i == 2 ? 1 : 0);
        Onnx__Tensor *p = onnx_make_tensor("w", dtype_to_onnx((dtype)type), 1, dims);
        p->has_raw_data = 1;
        p->raw_data.data = t.data;
        p->raw_data.len = tensor_bytes(&t);
        check_tensor(p, (dtype)type, "0,0,1");
        arena_dispose(&a);
    }
}

Test(import_onnx_tensors, reads_typed_fields_of_every_type)
{
    static const dtype narrow[] = {DTYPE_BOOL, DTYPE_U8, DTYPE_I8, DTYPE_U16, DTYPE_I16, DTYPE_I32};
    int32_t words[] = {0, 1, 1}, halves[] = {0x3c00, 0xc000, 0x7bff};
    int32_t brains[] = {0x3f80, 0xc000, 0x4049};
    int64_t longs[] = {-5, 1ll << 40, 7}, dims[] = {3};
    uint64_t unsigned_longs[] = {5, 1ull << 31, 7};
    float floats[] = {1.5f, -2, 0};
    double doubles[] = {1.5, -2, 0};
    for (size_t i = 0; i < sizeof narrow / sizeof narrow[0]; i++) {
        Onnx__Tensor *p = onnx_make_tensor("w", dtype_to_onnx(narrow[i]), 1, dims);
        p->int32_data = words;
        p->n_int32_data = 3;
        check_tensor(p, narrow[i], "0,1,1");
    }
    Onnx__Tensor *p = onnx_make_tensor("w", 10, 1, dims);
    p->int32_data = halves;
    p->n_int32_data = 3;
    check_tensor(p, DTYPE_F16, "1,-2,65504");
    p = onnx_make_tensor("w", 16, 1, dims);
    p->int32_data = brains;
    p->n_int32_data = 3;
    check_tensor(p, DTYPE_BF16, "1,-2,3.14062");
    p = onnx_make_tensor("w", 7, 1, dims);
    p->int64_data = longs;
    p->n_int64_data = 3;
    check_tensor(p, DTYPE_I64, "-5,1.09951e+12,7");
    p = onnx_make_tensor("w", 13, 1, dims);
    p->uint64_data = unsigned_longs;
    p->n_uint64_data = 3;
    check_tensor(p, DTYPE_U64, "5,2.14748e+09,7");
    p->data_type = 12;
    check_tensor(p, DTYPE_U32, "5,2.14748e+09,7");
    p = onnx_make_tensor("w", 1, 1, dims);
    p->float_data = floats;
    p->n_float_data = 3;
    check_tensor(p, DTYPE_F32, "1.5,-2,0");
    p = onnx_make_tensor("w", 11, 1, dims);
    p->double_data = doubles;
    p->n_double_data = 3;
    check_tensor(p, DTYPE_F64, "1.5,-2,0");
}

Test(import_onnx_tensors, reads_strings_scalars_and_empty_ones)
{
    ProtobufCBinaryData texts[] = {{2, (uint8_t *)"ab"}, {0, NULL}};
    int64_t two = 2, zero = 0;
    Onnx__Tensor *p = onnx_make_tensor("w", 8, 1, &two);
    p->string_data = texts;
    p->n_string_data = 2;
    graph *g = import_tensor(p);
    const tensor_string *strings = g->values[g->nodes[0].inputs[0]].constant->data;
    cr_assert_eq(strings[0].bytes, 2);
    cr_assert_eq(memcmp(strings[0].data, "ab", 2), 0);
    cr_assert_eq(strings[1].bytes, 0);
    graph_destroy(g);
    check_tensor(onnx_make_tensor("w", 1, 1, &zero), DTYPE_F32, "");
    p = onnx_make_tensor("w", 1, 0, NULL);
    p->float_data = &(float){4};
    p->n_float_data = 1;
    check_tensor(p, DTYPE_F32, "4");
}

static void expect_rejected(Onnx__Tensor *t, status code, const char *word)
{
    onnx_builder *b = onnx_begin(17);
    onnx_add_tensor(b, t);
    onnx_add_output(b, "w");
    onnx_expect_failure(b, code, NAMES("'w'", word));
}

Test(import_onnx_tensors, rejects_what_does_not_add_up)
{
    int64_t three = 3, negative = -3, huge[] = {1ll << 40, 1ll << 40},
            many[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    expect_rejected(onnx_make_tensor("w", 1, 1, &three), STATUS_CORRUPT, "0 elements");
    expect_rejected(onnx_make_tensor("w", 1, 1, &negative), STATUS_CORRUPT, "negative");
    expect_rejected(onnx_make_tensor("w", 1, 2, huge), STATUS_CORRUPT, "is too large");
    expect_rejected(onnx_make_tensor("w", 1, 9, many), STATUS_UNSUPPORTED, "rank 9");
    expect_rejected(onnx_make_tensor("w", 22, 1, &three), STATUS_UNSUPPORTED, "INT4");
    expect_rejected(onnx_make_tensor("w", 17, 1, &three), STATUS_UNSUPPORTED, "FLOAT8E4M3FN");
    expect_rejected(onnx_make_tensor("w", 0, 1, &three), STATUS_UNSUPPORTED, "supported");
    Onnx__Tensor *p = onnx_make_tensor("w", 1, 1, &three);
    p->has_raw_data = 1;
    p->raw_data.data = (uint8_t *)"elevenbytes";
    p->raw_data.len = 11;
    expect_rejected(p, STATUS_CORRUPT, "11 bytes");
    p = onnx_make_tensor("w", 9, 1, &three);
    p->has_raw_data = 1;
    p->raw_data.data = (uint8_t *)"\0\1\2";
    p->raw_data.len = 3;
    expect_rejected(p, STATUS_CORRUPT, "neither 0 nor 1");
}

static Onnx__Node *begin_constant(onnx_builder **b)
{
    *b = onnx_begin(17);
    onnx_add_output(*b, "k");
    return onnx_add(*b, "Constant", NAMES(NULL), NAMES("k"));
}

static void check_constant(onnx_builder *b, dtype type, int rank, const char *want)
{
    graph *g = onnx_expect(b);
    const graph_value *v = &g->values[g->outputs[0]];
    cr_assert_eq(g->node_count, 0);
    cr_assert_eq(v->constant->dtype, type);
    cr_assert_eq(v->constant->rank, rank);
    if (type != DTYPE_BYTES)
        cr_assert_str_eq(onnx_constant_text(g, g->outputs[0]), want);
    graph_destroy(g);
}

Test(import_onnx_tensors, takes_constants_in_every_form)
{
    onnx_builder *b;
    int64_t ints[] = {4, -5}, two = 2;
    onnx_set_int(begin_constant(&b), "value_int", 7);
    check_constant(b, DTYPE_I64, 0, "7");
    onnx_set_float(begin_constant(&b), "value_float", 2.5f);
    check_constant(b, DTYPE_F32, 0, "2.5");
    onnx_set_ints(begin_constant(&b), "value_ints", 2, ints);
    check_constant(b, DTYPE_I64, 1, "4,-5");
    onnx_set_ints(begin_constant(&b), "value_ints", 0, NULL);
    check_constant(b, DTYPE_I64, 1, "");
    onnx_set_string(begin_constant(&b), "value_string", "text");
    check_constant(b, DTYPE_BYTES, 0, "");
    float floats[] = {1, 2};
    Onnx__Attribute *a = onnx_set(begin_constant(&b), "value_floats", 6);
    a->floats = floats;
    a->n_floats = 2;
    check_constant(b, DTYPE_F32, 1, "1,2");
    a = onnx_set(begin_constant(&b), "value", 4);
    a->t = onnx_make_tensor("", 1, 1, &two);
    a->t->float_data = floats;
    a->t->n_float_data = 2;
    check_constant(b, DTYPE_F32, 1, "1,2");
    onnx_set(begin_constant(&b), "sparse_value", 11);
    onnx_expect_failure(b, STATUS_UNSUPPORTED, NAMES("'k'", "Constant", "sparse_value"));
    begin_constant(&b);
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("Constant"));
}
