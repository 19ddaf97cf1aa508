#ifndef DEVICES_CPU_ELEMENTWISE_BINARY_FLOAT_H
#define DEVICES_CPU_ELEMENTWISE_BINARY_FLOAT_H

#include <math.h>
#include <tgmath.h>

#include "devices/cpu/elementwise/binary_compare.h"

/* Operators on pairs of floats. binary_f32.c and binary_f64.c compile these lines: ELEMENT is the
 * type, MEMBER its member of cpu_block, BLOCKS the table. tgmath.h picks the functions of the type.
 */

#ifdef ELEMENT

static void add_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out->MEMBER[i] = a->MEMBER[i] + b->MEMBER[i];
}

static void sub_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out->MEMBER[i] = a->MEMBER[i] - b->MEMBER[i];
}

static void mul_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out->MEMBER[i] = a->MEMBER[i] * b->MEMBER[i];
}

static void div_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out->MEMBER[i] = a->MEMBER[i] / b->MEMBER[i];
}

static void max_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ELEMENT x = a->MEMBER[i], y = b->MEMBER[i];
        out->MEMBER[i] = x > y || x != x ? x : y;
    }
}

static void min_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ELEMENT x = a->MEMBER[i], y = b->MEMBER[i];
        out->MEMBER[i] = x < y || x != x ? x : y;
    }
}

static void prelu_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ELEMENT x = a->MEMBER[i], y = b->MEMBER[i];
        out->MEMBER[i] = x < 0 ? x * y : x;
    }
}

static double floored_mod(double x, double y)
{
    double r = fmod(x, y);
    if (r == 0)
        return copysign(r, y);
    return (r < 0) != (y < 0) ? r + y : r;
}

static void mod_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out->MEMBER[i] = floored_mod(a->MEMBER[i], b->MEMBER[i]);
}

static void fmod_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out->MEMBER[i] = fmod(a->MEMBER[i], b->MEMBER[i]);
}

static void pow_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ELEMENT x = a->MEMBER[i], y = b->MEMBER[i];
        out->MEMBER[i] = y == 2 ? x * x : pow(x, y);
    }
}

const cpu_binary_block BLOCKS[CPU_BINARY_COUNT] = {
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
    [CPU_BINARY_EQUAL] = equal_block,
    [CPU_BINARY_LESS] = less_block,
    [CPU_BINARY_LESS_OR_EQUAL] = less_or_equal_block,
    [CPU_BINARY_GREATER] = greater_block,
    [CPU_BINARY_GREATER_OR_EQUAL] = greater_or_equal_block,
};

#endif
#endif
