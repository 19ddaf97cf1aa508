#ifndef DEVICES_CPU_ELEMENTWISE_BINARY_INTEGER_H
#define DEVICES_CPU_ELEMENTWISE_BINARY_INTEGER_H

#include "devices/cpu/elementwise/binary_compare.h"

/* Operators on pairs of integers that binary_i64.c and binary_u64.c share: ELEMENT is the type,
 * MEMBER its member of cpu_block. Sums, differences and products wrap, so they are those of u64 for
 * both. */

#ifdef ELEMENT

static void add_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out->u64[i] = a->u64[i] + b->u64[i];
}

static void sub_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out->u64[i] = a->u64[i] - b->u64[i];
}

static void mul_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out->u64[i] = a->u64[i] * b->u64[i];
}

static void max_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ELEMENT x = a->MEMBER[i], y = b->MEMBER[i];
        out->MEMBER[i] = x > y ? x : y;
    }
}

static void min_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ELEMENT x = a->MEMBER[i], y = b->MEMBER[i];
        out->MEMBER[i] = x < y ? x : y;
    }
}

static void bitwise_and_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out->u64[i] = a->u64[i] & b->u64[i];
}

static void bitwise_or_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out->u64[i] = a->u64[i] | b->u64[i];
}

static void bitwise_xor_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out->u64[i] = a->u64[i] ^ b->u64[i];
}

/* The exponent is signed. */
static void pow_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t base = a->u64[i], result = 1;
        int64_t exponent = b->i64[i];
        if (exponent < 0) /* 1 / base^n, toward zero */
            result = base == 1 ? 1 : base == UINT64_MAX ? (exponent & 1 ? UINT64_MAX : 1) : 0;
        for (; exponent > 0; exponent >>= 1, base *= base)
            if (exponent & 1)
                result *= base;
        out->u64[i] = result;
    }
}

#endif
#endif
