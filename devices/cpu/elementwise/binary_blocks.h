#ifndef DEVICES_CPU_ELEMENTWISE_BINARY_BLOCKS_H
#define DEVICES_CPU_ELEMENTWISE_BINARY_BLOCKS_H

#include "devices/cpu/tensor_loops/block.h"

/* What operators on pairs compute, for each type that we compute in. */

typedef enum cpu_binary {
    CPU_BINARY_ADD,
    CPU_BINARY_SUB,
    CPU_BINARY_MUL,
    CPU_BINARY_DIV,
    CPU_BINARY_MAX,
    CPU_BINARY_MIN,
    CPU_BINARY_PRELU,
    CPU_BINARY_MOD,  /* the sign of the divisor */
    CPU_BINARY_FMOD, /* the sign of the dividend */
    CPU_BINARY_POW,
    CPU_BINARY_BITWISE_AND,
    CPU_BINARY_BITWISE_OR,
    CPU_BINARY_BITWISE_XOR,
    CPU_BINARY_SHIFT_LEFT,
    CPU_BINARY_SHIFT_RIGHT,
    CPU_BINARY_COMPARE, /* from here on the result is out->u8, 0 or 1 */
    CPU_BINARY_AND = CPU_BINARY_COMPARE,
    CPU_BINARY_OR,
    CPU_BINARY_XOR,
    CPU_BINARY_EQUAL,
    CPU_BINARY_LESS,
    CPU_BINARY_LESS_OR_EQUAL,
    CPU_BINARY_GREATER,
    CPU_BINARY_GREATER_OR_EQUAL,
    CPU_BINARY_COUNT
} cpu_binary;

/* `out` may be `a` or `b`. */
typedef void (*cpu_binary_block)(const cpu_block *a, const cpu_block *b, cpu_block *out,
                                 size_t count);

/* By cpu_binary; NULL: not defined for that type. */
extern const cpu_binary_block cpu_binary_blocks_f32[CPU_BINARY_COUNT];
extern const cpu_binary_block cpu_binary_blocks_f64[CPU_BINARY_COUNT];
extern const cpu_binary_block cpu_binary_blocks_i64[CPU_BINARY_COUNT];
extern const cpu_binary_block cpu_binary_blocks_u64[CPU_BINARY_COUNT];

#endif
