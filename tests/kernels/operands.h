#ifndef TESTS_KERNELS_OPERANDS_H
#define TESTS_KERNELS_OPERANDS_H

#include <stddef.h>
#include <stdint.h>

/* Random operands of matrix multiplications, in check_buffer()s that check_reset() frees. */

/* `count` values in [low, high). */
float *operand_floats(size_t count, float low, float high);
/* `count` int8 weights; every ninth turn all of them are -128. */
const int8_t *operand_weights(size_t count, unsigned turn);
/* `count` values of at most `limit` in size. */
int16_t *operand_s16(size_t count, int limit);
/* `count` values in [-1, 1). */
uint16_t *operand_bf16(size_t count);

/* operand_weights of [k][n], packed by gemm_pack_u8s8_scalar(). */
void *operand_packed_u8s8(size_t k, size_t n, unsigned turn);
/* Packed weights of [k][n], whose panels are sorted into tiles as level amx has them. */
void *operand_tiled_u8s8(const void *packed, size_t k, size_t n);
void *operand_tiled_bf16(const void *packed, size_t k, size_t n);

#endif
