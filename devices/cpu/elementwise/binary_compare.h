#ifndef DEVICES_CPU_ELEMENTWISE_BINARY_COMPARE_H
#define DEVICES_CPU_ELEMENTWISE_BINARY_COMPARE_H

#include "devices/cpu/elementwise/binary_blocks.h"

/* Comparisons of MEMBER, of any type; for binary_float.h and binary_integer.h. */

#ifdef MEMBER

static void equal_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out->u8[i] = a->MEMBER[i] == b->MEMBER[i];
}

static void less_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out->u8[i] = a->MEMBER[i] < b->MEMBER[i];
}

static void less_or_equal_block(const cpu_block *a, const cpu_block *b, cpu_block *out,
                                size_t count)
{
    for (size_t i = 0; i < count; i++)
        out->u8[i] = a->MEMBER[i] <= b->MEMBER[i];
}

static void greater_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out->u8[i] = a->MEMBER[i] > b->MEMBER[i];
}

static void greater_or_equal_block(const cpu_block *a, const cpu_block *b, cpu_block *out,
                                   size_t count)
{
    for (size_t i = 0; i < count; i++)
        out->u8[i] = a->MEMBER[i] >= b->MEMBER[i];
}

#endif
#endif
