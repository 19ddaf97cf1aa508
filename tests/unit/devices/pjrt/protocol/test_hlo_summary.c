/* The summary of optimized programs, from bytes made here: right, cut at every byte, and flipped.
 */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "devices/pjrt/protocol/hlo_summary.h"

typedef struct bytes {
    unsigned char data[4096];
    size_t count;
} bytes;

static void put_varint(bytes *b, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        b->data[b->count++] = (unsigned char)(value | 128);
    b->data[b->count++] = (unsigned char)value;
}

static void put_number(bytes *b, unsigned field, uint64_t value)
{
    put_varint(b, (uint64_t)field << 3);
    put_varint(b, value);
}

static void put_bytes(bytes *b, unsigned field, const void *data, size_t count)
{
    put_varint(b, (uint64_t)field << 3 | 2);
    put_varint(b, count);
    memcpy(b->data + b->count, data, count);
    b->count += count;
}

/* Field numbers: xla/service/hlo.proto. */
static void put_instruction(bytes *computation, const char *opcode, int id, int element_type,
                            int operand_a, int operand_b, const char *config)
{
    bytes b = {.count = 0}, shape = {.count = 0}, operands = {.count = 0};
    put_bytes(&b, 1, "name", 4);
    put_bytes(&b, 2, opcode, strlen(opcode));
    put_number(&shape, 2, (uint64_t)element_type);
    put_bytes(&b, 3, shape.data, shape.count);
    put_number(&b, 35, (uint64_t)id);
    if (operand_a > 0) {
        put_varint(&operands, (uint64_t)operand_a);
        put_varint(&operands, (uint64_t)operand_b);
        put_bytes(&b, 36, operands.data, operands.count); /* packed */
    }
    put_bytes(&b, 43, config, strlen(config));
    put_bytes(computation, 2, b.data, b.count);
}

static bytes make_module(void)
{
    bytes computation = {.count = 0}, module = {.count = 0};
    put_instruction(&computation, "parameter", 1, 2, 0, 0, "");
    put_instruction(&computation, "parameter", 2, 16, 0, 0, "");
    put_instruction(&computation, "parameter", 3, 11, 0, 0, "");
    put_instruction(&computation, "dot", 4, 4, 1, 1, "{\"estimated_cycles\":\"120\"}");
    put_instruction(&computation, "convolution", 5, 11, 2, 2,
                    "{\"estimated_cycles\":\"3\",\"x\":1}");
    put_instruction(&computation, "dot", 6, 11, 3, 3, "");
    put_instruction(&computation, "dot", 7, 11, 1, 3, "");
    put_instruction(&computation, "fusion", 8, 11, 4, 5,
                    "{\"estimated_cycles\":\"9223372036854775807\"}");
    put_bytes(&module, 1, "module", 6);
    put_bytes(&module, 3, computation.data, computation.count);
    return module;
}

static void check_module(const bytes *b)
{
    hlo_summary s;
    cr_assert_eq(hlo_summarise(b->data, b->count, &s), STATUS_OK);
    cr_assert_eq(s.products, 4);
    cr_assert_eq(s.products_s8, 1);
    cr_assert_eq(s.products_bf16, 1);
    cr_assert_eq(s.products_f32, 1);
    cr_assert_eq(s.instructions, 8);
    cr_assert_eq(s.estimated_cycles, 123);
    cr_assert_eq(s.unestimated, 1);
}

Test(hlo_summary, counts_products_and_cycles, .timeout = 300)
{
    bytes module = make_module(), wrapped = {.count = 0};
    check_module(&module);
    put_bytes(&wrapped, 1, module.data, module.count);
    put_bytes(&wrapped, 2, "config", 6);
    check_module(&wrapped);
}

/* In memory of exactly that size, so that a sanitizer sees the first byte read too far. */
static status summarise_exactly(const unsigned char *data, size_t count)
{
    unsigned char *copy = malloc(count ? count : 1);
    memcpy(copy, data, count);
    hlo_summary s;
    status result = hlo_summarise(copy, count, &s);
    free(copy);
    return result;
}

Test(hlo_summary, cut_at_every_byte, .timeout = 300)
{
    bytes module = make_module();
    for (size_t count = 0; count < module.count; count++)
        cr_assert_eq(summarise_exactly(module.data, count), STATUS_CORRUPT, "cut to %zu", count);
}

Test(hlo_summary, flipped_bytes_end, .timeout = 300)
{
    bytes module = make_module();
    for (size_t i = 0; i < module.count; i++)
        for (int bit = 0; bit < 8; bit++) {
            bytes flipped = module;
            flipped.data[i] ^= (unsigned char)(1 << bit);
            status s = summarise_exactly(flipped.data, flipped.count);
            cr_assert(s == STATUS_OK || s == STATUS_CORRUPT);
        }
    uint32_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        bytes noise = module;
        for (int k = 0; k < 8; k++) {
            seed = seed * 1664525u + 1013904223u;
            noise.data[(seed >> 8) % noise.count] = (unsigned char)(seed >> 24);
        }
        status s = summarise_exactly(noise.data, noise.count);
        cr_assert(s == STATUS_OK || s == STATUS_CORRUPT);
    }
}

/* HloModuleProto { host_program_shape { parameters { S32 [8,128] } parameters { F32 [] }
 * result { TUPLE of BF16 [8,2] and one of an unknown type } } }, wrapped with its config or not. */
static const unsigned char signature_module[] = {
    0x22, 36,                                   /* program shape */
    0x0a, 7,  0x10, 4,  0x1a, 3, 8,    0x80, 1, /* S32, packed dims */
    0x0a, 2,  0x10, 11,                         /* F32, scalar */
    0x12, 21, 0x10, 13,                         /* tuple */
    0x22, 6,  0x10, 16, 0x18, 8, 0x18, 2,       /* BF16, dims apart */
    0x22, 9,  0x10, 99, 0x1a, 5, 1,    1,    1, 1, 1};

static void check_signature(const unsigned char *data, size_t length)
{
    hlo_signature s;
    cr_assert_eq(hlo_read_signature(data, length, &s), STATUS_OK, "%s", status_message());
    cr_assert(s.parameter_count == 2 && s.result_count == 2);
    cr_assert(s.shapes[0].has_dtype && s.shapes[0].dtype == DTYPE_I32 && s.shapes[0].rank == 2);
    cr_assert(s.shapes[0].dims[0] == 8 && s.shapes[0].dims[1] == 128);
    cr_assert(s.shapes[1].dtype == DTYPE_F32 && s.shapes[1].rank == 0);
    cr_assert(s.shapes[2].dtype == DTYPE_BF16 && s.shapes[2].dims[1] == 2);
    cr_assert(!s.shapes[3].has_dtype && s.shapes[3].rank == 5);
    hlo_signature_dispose(&s);
}

Test(hlo_signature, says_what_a_program_takes_and_gives, .timeout = 300)
{
    unsigned char wrapped[sizeof signature_module + 2] = {0x0a, sizeof signature_module};
    memcpy(wrapped + 2, signature_module, sizeof signature_module);
    check_signature(signature_module, sizeof signature_module);
    check_signature(wrapped, sizeof wrapped);
    hlo_signature s;
    for (size_t cut = 0; cut < sizeof signature_module; cut++)
        cr_assert_eq(hlo_read_signature(signature_module, cut, &s), STATUS_CORRUPT);
}
