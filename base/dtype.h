#ifndef BASE_DTYPE_H
#define BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Element types of tensors, in memory little-endian and unpadded. */
typedef enum dtype {
    DTYPE_BOOL, /* one byte, 0 or 1 */
    DTYPE_U8,
    DTYPE_U16,
    DTYPE_U32,
    DTYPE_U64,
    DTYPE_I8,
    DTYPE_I16,
    DTYPE_I32,
    DTYPE_I64,
    DTYPE_F16,  /* IEEE 754 binary16 */
    DTYPE_BF16, /* the upper half of a binary32 */
    DTYPE_F32,
    DTYPE_F64,
    DTYPE_BYTES, /* each element is a `tensor_string` (base/tensor.h) */
    DTYPE_COUNT
} dtype;

/* Bytes of one element in memory; for DTYPE_BYTES that of its `tensor_string`. */
size_t dtype_bytes(dtype type);

bool dtype_is_float(dtype type);   /* F16, BF16, F32, F64 */
bool dtype_is_integer(dtype type); /* U8 .. I64, not BOOL */
bool dtype_is_signed(dtype type);  /* I8 .. I64 and the floats */

/* Smallest and largest value of an integer type. */
int64_t dtype_integer_min(dtype type);
uint64_t dtype_integer_max(dtype type);

/* Names in KServe v2 ("FP32", "BYTES"), in TensorFlow ("DT_FLOAT", "DT_STRING"), and short ("f32").
 * Static. */
const char *dtype_kserve_name(dtype type);
const char *dtype_tensorflow_name(dtype type);
const char *dtype_name(dtype type);

/* The type of that KServe name; false: there is none. */
bool dtype_from_kserve_name(const char *name, size_t name_bytes, dtype *out);

/* ONNX TensorProto.DataType numbers (onnx.proto). */
bool dtype_from_onnx(int onnx_type, dtype *out);
int dtype_to_onnx(dtype type);

/* Conversions between binary32 and the 16-bit floats: round to nearest, ties to even; NaN stays
 * NaN, quiet. */
float dtype_f16_to_f32(uint16_t half);
uint16_t dtype_f32_to_f16(float value);
float dtype_bf16_to_f32(uint16_t half);
uint16_t dtype_f32_to_bf16(float value);

#endif
