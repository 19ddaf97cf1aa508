#include <criterion/criterion.h>
#include <string.h>

#include "server/protocol/grpc/wire.h"

static status read_all(const char *data, size_t bytes, int *fields)
{
    wire_reader r = {data, data + bytes};
    wire_field f;
    bool has_field;
    status failure;
    *fields = 0;
    while (!(failure = wire_next(&r, &f, &has_field)) && has_field)
        ++*fields;
    return failure;
}

Test(grpc_wire, what_is_written_is_read_and_every_truncation_is_refused)
{
    text_buffer out = {0};
    int fields;
    size_t ends[4] = {0};
    wire_put_varint(&out, 1, UINT64_MAX);
    ends[1] = out.bytes;
    wire_put_bytes(&out, 300, "four", 4);
    ends[2] = out.bytes;
    wire_put_varint(&out, 2, 127);
    ends[3] = out.bytes;
    for (size_t n = 0; n <= out.bytes; n++) {
        bool is_end = n == 0 || n == ends[1] || n == ends[2] || n == ends[3];
        cr_assert_eq(read_all(out.data, n, &fields), is_end ? STATUS_OK : STATUS_INVALID_ARGUMENT,
                     "%zu of %zu", n, out.bytes);
    }
    cr_assert_eq(fields, 3);
    text_buffer_dispose(&out);
}

Test(grpc_wire, broken_fields_are_refused)
{
    static const struct {
        const char *data;
        size_t bytes;
    } cases[] = {
        {"\x02\x00", 2},                                          /* number 0 */
        {"\x0b\x0c", 2},                                          /* a group */
        {"\x0e", 1},                                              /* wire type 6 */
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},     /* a huge length */
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12}, /* a varint of 11 bytes */
        {"\xf8\xff\xff\xff\x7f\x00", 6},                          /* a number beyond 2^29 */
        {"\x09\x00\x00\x00", 4},                                  /* half a double */
        {"\x0d\x00\x00", 3},                                      /* half a float */
    };
    int fields;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_assert_eq(read_all(cases[i].data, cases[i].bytes, &fields), STATUS_INVALID_ARGUMENT,
                     "case %zu", i);
}

Test(grpc_wire, wrapping_puts_a_head_before)
{
    text_buffer out = {0};
    char long_text[200] = {0};
    text_buffer_put(&out, "x");
    wire_put_bytes(&out, 1, long_text, sizeof long_text);
    wire_wrap(&out, 1, 5);
    wire_reader r = {out.data + 1, out.data + out.bytes};
    wire_field f;
    bool has_field;
    cr_assert_eq(wire_next(&r, &f, &has_field), STATUS_OK);
    cr_assert(has_field && f.number == 5 && f.type == WIRE_BYTES && f.bytes == 203);
    r = (wire_reader){f.data, f.data + f.bytes};
    cr_assert_eq(wire_next(&r, &f, &has_field), STATUS_OK);
    cr_assert(has_field && f.number == 1 && f.bytes == 200);
    text_buffer_dispose(&out);
}
