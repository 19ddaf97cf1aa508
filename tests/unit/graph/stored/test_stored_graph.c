/* A graph that was written comes back as it was; damage is told; nothing in a file crashes. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/identity/content_hash.h"
#include "base/io/file_reader.h"
#include "base/xorshift.h"
#include "graph/import.h"
#include "graph/stored/stored_graph.h"
#include "tests/support/temporary.h"

#define KEY UINT64_C(0x1234)
#define BYTES_MAX ((uint64_t)64 << 20)
#define HEADER_WORDS                                                                               \
    10 /* magic, checksum, key, build, layout, bytes, words, their checksum, ...                   \
        */

static char folder[TEMPORARY_FOLDER_BYTES], path[300], again[300];

static void begin(void)
{
    temporary_make(folder);
    snprintf(path, sizeof path, "%s/a.graph", folder);
    snprintf(again, sizeof again, "%s/b.graph", folder);
}

static char *read_file(const char *from, size_t *bytes)
{
    void *data;
    cr_assert_eq(file_reader_read_whole(from, BYTES_MAX, &data, bytes), STATUS_OK, "%s",
                 status_message());
    return data;
}

/* With attributes of every kind, a body, an absent input and shared constants. */
static graph *make_all(void)
{
    static const char *const texts[] = {"a", "", "long enough to take several words"};
    static const float floats[] = {1, -2.5f, 3};
    static int64_t shared_data[] = {1, 2, 3};
    static tensor t = {.dtype = DTYPE_I64, .rank = 1, .dims = {3}, .data = shared_data};
    static tensor empty = {.dtype = DTYPE_F32, .rank = 2, .dims = {0, 4}, .data = shared_data};
    graph *g = graph_create("all"), *body = graph_create("body"), *second = graph_create("second");
    const graph_dim dims[] = {{.batch = 1}, {.is_unknown = true}};
    graph_value_index x = graph_add_input(g, "x", DTYPE_F32, 2, dims);
    const char **names = arena_allocate_zeroed(&g->memory, 2, sizeof *names);
    names[1] = "width";
    g->values[x].dim_names = names;
    graph_value_index inner = graph_add_input(body, "i", DTYPE_I64, 0, NULL);
    graph_add_output(body, inner, "o");
    graph_add_output(second, graph_add_input(second, "i", DTYPE_I64, 0, NULL), "o");
    graph_own_body(g, body);
    graph_own_body(g, second);
    graph_value_index c = graph_add_constant(g, "c", &t), d = graph_add_constant(g, "d", &t);
    graph_value_index e = graph_add_constant(g, "e", &empty);
    graph_add_constant(g, "nobody reads it", &t);
    const graph_attribute attributes[] = {
        graph_make_int("int", -5),
        graph_make_float("float", 0.25f),
        graph_make_string("string", "text"),
        graph_make_ints(g, "ints", 3, shared_data),
        {.name = "floats", .kind = GRAPH_ATTRIBUTE_FLOATS, .count = 3, .floats = floats},
        {.name = "strings", .kind = GRAPH_ATTRIBUTE_STRINGS, .count = 3, .strings = texts},
        {.name = "tensor", .kind = GRAPH_ATTRIBUTE_TENSOR, .t = &t},
        {.name = "body", .kind = GRAPH_ATTRIBUTE_GRAPH, .graph = body},
        {.name = "second", .kind = GRAPH_ATTRIBUTE_GRAPH, .graph = second},
    };
    const graph_value_index inputs[] = {x, GRAPH_NO_VALUE, c, d, e};
    graph_add_output(g, graph_add(g, GRAPH_OP_LOOP, 5, inputs, 9, attributes), "y");
    g->sequence_max = 7;
    g->is_dynamic = true;
    return g;
}

static const tensor shapes[] = {{.dtype = DTYPE_F32, .rank = 2, .dims = {3, 9}}};

/* What is written of the graph that was read is the same file. */
static void check_round(const graph *g)
{
    size_t first_bytes, second_bytes;
    stored_graph_about about = {.flags = 5, .note = "why", .shapes = shapes, .shape_count = 1};
    stored_graph_about found;
    graph *read;
    cr_assert_eq(stored_graph_write(path, KEY, g, &about, BYTES_MAX), STATUS_OK, "%s",
                 status_message());
    cr_assert_eq(stored_graph_read(path, KEY, &read, &found), STATUS_OK, "%s", status_message());
    cr_assert(found.flags == 5 && strcmp(found.note, "why") == 0 && found.shape_count == 1);
    cr_assert(tensor_same_shape(&found.shapes[0], &shapes[0]));
    cr_assert_eq(read->value_count, g->value_count);
    cr_assert_eq(read->is_dynamic, g->is_dynamic);
    cr_assert_eq(read->sequence_max, g->sequence_max);
    cr_assert_str_eq(read->source, g->source);
    for (int32_t i = 0; i < g->value_count; i++) {
        const graph_shape *a = &read->values[i].shape, *b = &g->values[i].shape;
        cr_assert_eq(read->values[i].dtype, g->values[i].dtype);
        cr_assert_eq(read->values[i].has_dtype, g->values[i].has_dtype);
        cr_assert_eq(a->rank, b->rank);
        for (int d = 0; d < a->rank; d++)
            cr_assert(graph_dim_equal(a->dims[d], b->dims[d]) &&
                      a->dims[d].is_unknown == b->dims[d].is_unknown);
        cr_assert_eq(read->values[i].producer, g->values[i].producer);
        cr_assert_eq(graph_find_value(read, g->values[i].name), i);
    }
    cr_assert_eq(stored_graph_write(again, KEY, read, &found, BYTES_MAX), STATUS_OK);
    char *first = read_file(path, &first_bytes), *second = read_file(again, &second_bytes);
    cr_assert_eq(first_bytes, second_bytes);
    cr_assert_eq(memcmp(first, second, first_bytes), 0);
    free(first);
    free(second);
    /* It can be built upon. */
    graph_value_index more = graph_add_constant_i64(read, "more", 0, NULL, (int64_t[]){1});
    graph_add(read, GRAPH_OP_IDENTITY, 1, &more, 0, NULL);
    cr_assert_eq(graph_check_memory(read), STATUS_OK);
    graph_destroy(read);
}

Test(stored_graph, comes_back_as_it_was)
{
    static const char *const models[] = {"examples/models/digits/1/model.onnx",
                                         "examples/models/loudness/1/model.onnx",
                                         "tests/data/golden/models/cnn_1x28x28.onnx",
                                         "tests/data/golden/models/bert_tiny_cls_legacy.onnx",
                                         "tests/data/torture/quantised.onnx",
                                         "tests/data/torture/control.onnx"};
    begin();
    graph *g = make_all();
    check_round(g);
    graph_destroy(g);
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        char model[400];
        graph_import_options options = {0};
        snprintf(model, sizeof model, PENSTOCK_SOURCE_DIR "/%s", models[i]);
        cr_assert_eq(graph_import_onnx(model, &options, &g), STATUS_OK, "%s", status_message());
        check_round(g);
        graph_destroy(g);
    }
    temporary_remove(folder);
}

Test(stored_graph, leaves_out_constants_that_nothing_reads)
{
    graph *g = make_all(), *read;
    stored_graph_about about = {0};
    begin();
    cr_assert_eq(stored_graph_write(path, KEY, g, &about, BYTES_MAX), STATUS_OK);
    cr_assert_eq(stored_graph_read(path, KEY, &read, &about), STATUS_OK);
    cr_assert(read->values[graph_find_value(read, "c")].constant != NULL);
    cr_assert(read->values[graph_find_value(read, "nobody reads it")].constant == NULL);
    graph_destroy(read);
    graph_destroy(g);
    temporary_remove(folder);
}

/* A list at the end of the file takes half as many words as it has numbers. */
Test(stored_graph, long_lists_of_floats_come_back)
{
    static const float floats[1000] = {[999] = 7};
    graph *g = graph_create("floats");
    graph_value_index x = graph_add_input(g, "x", DTYPE_F32, 0, NULL);
    graph_attribute list = {
        .name = "floats", .kind = GRAPH_ATTRIBUTE_FLOATS, .count = 1000, .floats = floats};
    graph_add_output(g, graph_add(g, GRAPH_OP_IDENTITY, 1, &x, 1, &list), "y");
    begin();
    check_round(g);
    graph_destroy(g);
    temporary_remove(folder);
}

static void write_all(void)
{
    graph *g = make_all();
    stored_graph_about about = {.note = "why", .shapes = shapes, .shape_count = 1};
    cr_assert_eq(stored_graph_write(path, KEY, g, &about, BYTES_MAX), STATUS_OK);
    graph_destroy(g);
}

static status read_bytes(const char *data, size_t bytes)
{
    graph *g;
    stored_graph_about about;
    unlink(again); /* truncated, it would be synced */
    temporary_write(folder, "b.graph", data, bytes);
    status s = stored_graph_read(again, KEY, &g, &about);
    static int accepted; /* can be walked through, and written: some of them, as each is synced */
    if (!s && accepted++ % 32 == 0)
        cr_assert_eq(stored_graph_write(path, KEY, g, &about, BYTES_MAX), STATUS_OK);
    if (!s)
        graph_destroy(g);
    return s;
}

Test(stored_graph, of_others_is_not_used)
{
    graph *g;
    stored_graph_about about;
    begin();
    cr_assert_eq(stored_graph_read(path, KEY, &g, &about), STATUS_NOT_FOUND);
    write_all();
    cr_assert_eq(stored_graph_read(path, KEY + 1, &g, &about), STATUS_CORRUPT);
    temporary_remove(folder);
}

Test(stored_graph, damage_is_told)
{
    size_t bytes;
    begin();
    write_all();
    char *data = read_file(path, &bytes);
    uint64_t header[HEADER_WORDS];
    memcpy(header, data, sizeof header);
    size_t words_end = sizeof header + (size_t)header[6] * 8;
    for (size_t i = 0; i < words_end; i++) {
        data[i] ^= 4;
        cr_assert_eq(read_bytes(data, bytes), STATUS_CORRUPT, "byte %zu", i);
        data[i] ^= 4;
    }
    data[header[8]] ^= 1; /* a constant */
    cr_assert_eq(read_bytes(data, bytes), STATUS_CORRUPT);
    data[header[8]] ^= 1;
    for (size_t cut = 1; cut <= bytes; cut += cut < 200 ? 1 : 97)
        cr_assert_eq(read_bytes(data, bytes - cut), STATUS_CORRUPT);
    free(data);
    temporary_remove(folder);
}

/* With the checksums that belong to it. */
static void sign(char *data)
{
    uint64_t header[HEADER_WORDS];
    memcpy(header, data, sizeof header);
    header[7] = content_hash(0, data + sizeof header, header[6] * 8);
    header[1] = content_hash(0, header + 2, sizeof header - 16);
    memcpy(data, header, sizeof header);
}

Test(stored_graph, forged_words_crash_nothing)
{
    static const uint64_t odd[] = {0,
                                   1,
                                   2,
                                   7,
                                   63,
                                   64,
                                   65,
                                   255,
                                   1000,
                                   1 << 20,
                                   INT32_MAX,
                                   UINT64_C(1) << 32,
                                   UINT64_MAX,
                                   UINT64_MAX - 1,
                                   UINT64_MAX / 8,
                                   INT64_MAX,
                                   UINT64_C(1) << 63};
    size_t bytes, accepted = 0, tried = 0;
    uint64_t random = 9;
    begin();
    write_all();
    char *data = read_file(path, &bytes), *forged = malloc(bytes);
    cr_assert(forged != NULL);
    uint64_t header[HEADER_WORDS];
    memcpy(header, data, sizeof header);
    for (size_t w = HEADER_WORDS; w < HEADER_WORDS + header[6]; w++)
        for (size_t k = 0; k < 4; k++, tried++) {
            uint64_t r = xorshift_next(&random);
            uint64_t word = k == 3 ? r : odd[r % (sizeof odd / sizeof odd[0])];
            memcpy(forged, data, bytes);
            memcpy(forged + w * 8, &word, 8);
            sign(forged);
            accepted += read_bytes(forged, bytes) == STATUS_OK;
        }
    cr_expect(accepted > 0 && accepted < tried, "%zu of %zu", accepted, tried);
    free(data);
    free(forged);
    temporary_remove(folder);
}

Test(stored_graph, what_cannot_be_kept_is_said)
{
    static tensor_string text = {(const uint8_t *)"text", 4};
    tensor t = {.dtype = DTYPE_BYTES, .rank = 1, .dims = {1}, .data = &text};
    stored_graph_about about = {0};
    begin();
    graph *g = make_all();
    cr_assert_eq(stored_graph_write(path, KEY, g, &about, 100), STATUS_UNSUPPORTED);
    graph_value_index text_value = graph_add_constant(g, "text", &t);
    graph_add(g, GRAPH_OP_IDENTITY, 1, &text_value, 0, NULL);
    cr_assert_eq(stored_graph_write(path, KEY, g, &about, BYTES_MAX), STATUS_UNSUPPORTED);
    cr_assert_eq(stored_graph_write("/nowhere/at/all", KEY, g, &about, BYTES_MAX),
                 STATUS_UNSUPPORTED);
    graph_destroy(g);
    g = make_all();
    cr_assert_eq(stored_graph_write("/nowhere/at/all", KEY, g, &about, BYTES_MAX), STATUS_IO);
    graph_destroy(g);
    temporary_remove(folder);
}
