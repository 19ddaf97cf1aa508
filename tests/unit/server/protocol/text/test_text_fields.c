#include <criterion/criterion.h>
#include <string.h>

#include "server/protocol/text/text_fields.h"

static arena memory;
static json_scan scan;
static text_list list;

static void begin(const char *json)
{
    arena_dispose(&memory);
    list = (text_list){0};
    json_scan_init(&scan, json, strlen(json), 8, true, &memory);
}

static void end(void)
{
    arena_dispose(&memory);
}

TestSuite(text_fields, .fini = end);

Test(text_fields, a_text_is_a_string_or_an_object_that_begins_with_it)
{
    static const struct {
        const char *json;
        bool is_row, are_columns;
    } cases[] = {{"\"a\"", true, false},
                 {"{\"text\":\"a\"}", true, true},
                 {"{\"text_pair\":1}", true, true},
                 {"{\"ids\":[1]}", false, false},
                 {"[\"a\"]", false, true},
                 {"[1]", false, false},
                 {"[]", false, false},
                 {"{}", false, false},
                 {"{\"b64\":\"\"}", false, false},
                 {"5", false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(cases[i].json);
        cr_assert_eq(text_is_next(&scan), cases[i].is_row, "%s", cases[i].json);
        cr_assert_eq(text_columns_are_next(&scan), cases[i].are_columns, "%s", cases[i].json);
    }
}

Test(text_fields, columns_make_pairs_in_either_order)
{
    begin("{\"text_pair\":[\"x\",\"y\"],\"text\":[\"a\",\"b\"]}");
    cr_assert_eq(text_read_columns(&scan, &list), STATUS_OK);
    cr_assert(list.count == 2 && list.bytes == 4);
    cr_assert(json_string_is(list.items[1].text, "b") && json_string_is(list.items[1].pair, "y"));
}

Test(text_fields, columns_that_do_not_fit_are_refused)
{
    static const char *const wrong[] = {"{\"text_pair\":[\"x\"]}",
                                        "{\"text\":[\"a\"],\"text_pair\":[\"x\",\"y\"]}",
                                        "{\"text\":[\"a\",\"b\"],\"text_pair\":[\"x\"]}",
                                        "{\"text\":[\"a\"],\"ids\":[1]}",
                                        "{\"text\":[]}",
                                        "[\"a\",1]"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        begin(wrong[i]);
        cr_assert_eq(text_read_columns(&scan, &list), STATUS_INVALID_ARGUMENT, "%s", wrong[i]);
    }
}

Test(text_fields, a_tensor_of_texts_is_bytes_with_one_for_each_row)
{
    tensor_string strings[2] = {{(const uint8_t *)"a", 1}, {NULL, 0}};
    tensor t = {.dtype = DTYPE_BYTES, .rank = 2, .dims = {2, 1}, .data = strings};
    begin("");
    cr_assert_eq(text_take_tensor(&t, false, &memory, &list), STATUS_OK);
    cr_assert(list.count == 2 && list.items[1].text.text != NULL);
    t.dims[0] = 1;
    cr_assert_eq(text_take_tensor(&t, true, &memory, &list), STATUS_INVALID_ARGUMENT);
    t.dims[1] = 2;
    cr_assert_eq(text_take_tensor(&t, false, &memory, &list), STATUS_INVALID_ARGUMENT);
    t = (tensor){.dtype = DTYPE_I64, .rank = 1, .dims = {2}, .data = strings};
    cr_assert_eq(text_take_tensor(&t, false, &memory, &list), STATUS_INVALID_ARGUMENT);
}
