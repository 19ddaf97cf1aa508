#define ELEMENT int64_t
#define MEMBER i64
#include "devices/cpu/elementwise/binary_integer.h"

/* Toward zero; x / 0 is 0, as in NumPy, because padding may divide by it. */
static void div_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t x = a->i64[i], y = b->i64[i];
        out->i64[i] = y == 0 ? 0 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
    }
}

static void prelu_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t x = a->i64[i], y = b->i64[i];
        out->i64[i] = x < 0 ? (int64_t)((uint64_t)x * (uint64_t)y) : x;
    }
}

static void mod_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t x = a->i64[i], y = b->i64[i];
        int64_t r = y == 0 || y == -1 ? 0 : x % y;
        out->i64[i] = r != 0 && (r < 0) != (y < 0) ? r + y : r;
    }
}

static void fmod_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t x = a->i64[i], y = b->i64[i];
        out->i64[i] = y == 0 || y == -1 ? 0 : x % y;
    }
}

/* Beyond the width, and for negative distances, only the sign's extension is left. */
static void shift_left_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t x = a->i64[i], y = b->i64[i];
        out->i64[i] = y < 0 || y > 63 ? 0 : (int64_t)((uint64_t)x << y);
    }
}

static void shift_right_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t x = a->i64[i], y = b->i64[i];
        out->i64[i] = y < 0 || y > 63 ? (x < 0 ? -1 : 0) : x >> y;
    }
}

static void and_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out->u8[i] = a->i64[i] && b->i64[i];
}

static void or_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out->u8[i] = a->i64[i] || b->i64[i];
}

static void xor_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out->u8[i] = !a->i64[i] != !b->i64[i];
}

const cpu_binary_block cpu_binary_blocks_i64[CPU_BINARY_COUNT] = {
    [CPU_BINARY_ADD] = add_block,
    [CPU_BINARY_SUB] = sub_block,
    [CPU_BINARY_MUL] = mul_block,
    [CPU_BINARY_DIV] = div_block,
    [CPU_BINARY_MAX] = max_block,
    [CPU_BINARY_MIN] = min_block,
    [CPU_BINARY_PRELU] = prelu_block,
    [CPU_BINARY_MOD] = mod_block,
    [CPU_BINARY_FMOD] = fmod_block,
    [CPU_BINARY_POW] = pow_block,
    [CPU_BINARY_BITWISE_AND] = bitwise_and_block,
    [CPU_BINARY_BITWISE_OR] = bitwise_or_block,
    [CPU_BINARY_BITWISE_XOR] = bitwise_xor_block,
    [CPU_BINARY_SHIFT_LEFT] = shift_left_block,
    [CPU_BINARY_SHIFT_RIGHT] = shift_right_block,
    [CPU_BINARY_AND] = and_block,
    [CPU_BINARY_OR] = or_block,
    [CPU_BINARY_XOR] = xor_block,
    [CPU_BINARY_EQUAL] = equal_block,
    [CPU_BINARY_LESS] = less_block,
    [CPU_BINARY_LESS_OR_EQUAL] = less_or_equal_block,
    [CPU_BINARY_GREATER] = greater_block,
    [CPU_BINARY_GREATER_OR_EQUAL] = greater_or_equal_block,
};
