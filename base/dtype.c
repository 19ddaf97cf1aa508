#include "base/dtype.h"

#include <assert.h>
#include <string.h>

typedef struct dtype_facts {
    const char *name, *kserve, *tensorflow;
    uint8_t bytes, onnx;
    bool is_integer, is_float, is_signed;
} dtype_facts;

/* ONNX numbers: TensorProto.DataType in onnx.proto. A tensor_string is a pointer and a length. */
static const dtype_facts facts[DTYPE_COUNT] = {
    [DTYPE_BOOL] = {"bool", "BOOL", "DT_BOOL", 1, 9, false, false, false},
    [DTYPE_U8] = {"u8", "UINT8", "DT_UINT8", 1, 2, true, false, false},
    [DTYPE_U16] = {"u16", "UINT16", "DT_UINT16", 2, 4, true, false, false},
    [DTYPE_U32] = {"u32", "UINT32", "DT_UINT32", 4, 12, true, false, false},
    [DTYPE_U64] = {"u64", "UINT64", "DT_UINT64", 8, 13, true, false, false},
    [DTYPE_I8] = {"i8", "INT8", "DT_INT8", 1, 3, true, false, true},
    [DTYPE_I16] = {"i16", "INT16", "DT_INT16", 2, 5, true, false, true},
    [DTYPE_I32] = {"i32", "INT32", "DT_INT32", 4, 6, true, false, true},
    [DTYPE_I64] = {"i64", "INT64", "DT_INT64", 8, 7, true, false, true},
    [DTYPE_F16] = {"f16", "FP16", "DT_HALF", 2, 10, false, true, true},
    [DTYPE_BF16] = {"bf16", "BF16", "DT_BFLOAT16", 2, 16, false, true, true},
    [DTYPE_F32] = {"f32", "FP32", "DT_FLOAT", 4, 1, false, true, true},
    [DTYPE_F64] = {"f64", "FP64", "DT_DOUBLE", 8, 11, false, true, true},
    [DTYPE_BYTES] = {"bytes", "BYTES", "DT_STRING", 16, 8, false, false, false},
};

static const dtype_facts *facts_of(dtype type)
{
    assert((unsigned)type < DTYPE_COUNT);
    return &facts[type];
}

size_t dtype_bytes(dtype type)
{
    return facts_of(type)->bytes;
}

bool dtype_is_float(dtype type)
{
    return facts_of(type)->is_float;
}

bool dtype_is_integer(dtype type)
{
    return facts_of(type)->is_integer;
}

bool dtype_is_signed(dtype type)
{
    return facts_of(type)->is_signed;
}

int64_t dtype_integer_min(dtype type)
{
    assert(dtype_is_integer(type));
    if (!dtype_is_signed(type))
        return 0;
    return type == DTYPE_I64 ? INT64_MIN : -((int64_t)1 << (8 * dtype_bytes(type) - 1));
}

uint64_t dtype_integer_max(dtype type)
{
    assert(dtype_is_integer(type));
    unsigned bits = 8 * (unsigned)dtype_bytes(type) - (dtype_is_signed(type) ? 1 : 0);
    return bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

const char *dtype_kserve_name(dtype type)
{
    return facts_of(type)->kserve;
}

const char *dtype_tensorflow_name(dtype type)
{
    return facts_of(type)->tensorflow;
}

const char *dtype_name(dtype type)
{
    return facts_of(type)->name;
}

bool dtype_from_kserve_name(const char *name, size_t name_bytes, dtype *out)
{
    for (int type = 0; type < DTYPE_COUNT; type++)
        if (strlen(facts[type].kserve) == name_bytes &&
            memcmp(facts[type].kserve, name, name_bytes) == 0) {
            *out = (dtype)type;
            return true;
        }
    return false;
}

bool dtype_from_onnx(int onnx_type, dtype *out)
{
    for (int type = 0; type < DTYPE_COUNT; type++)
        if (facts[type].onnx == onnx_type) {
            *out = (dtype)type;
            return true;
        }
    return false;
}

int dtype_to_onnx(dtype type)
{
    return facts_of(type)->onnx;
}

static uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float dtype_f16_to_f32(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = (half >> 10) & 31,
             fraction = half & 1023;
    if (exponent == 31)
        return bits_float(sign | 0x7f800000 | fraction << 13);
    if (exponent != 0)
        return bits_float(sign | (exponent + 112) << 23 | fraction << 13);
    float magnitude = (float)fraction * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}

uint16_t dtype_f32_to_f16(float value)
{
    uint32_t bits = float_bits(value), magnitude = bits & 0x7fffffff;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (magnitude > 0x7f800000)
        return sign | 0x7e00 | (uint16_t)(magnitude >> 13 & 0x1ff);
    if (magnitude >= 0x477ff000) /* 65520 and up round to infinity */
        return sign | 0x7c00;
    if (magnitude < 0x38800000) { /* subnormal: let the FPU round at the right bit by adding 0.5 */
        float shifted = bits_float(magnitude) + 0.5f;
        return sign | (uint16_t)(float_bits(shifted) - float_bits(0.5f));
    }
    uint32_t rounded = magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1);
    return sign | (uint16_t)(rounded >> 13);
}

float dtype_bf16_to_f32(uint16_t half)
{
    return bits_float((uint32_t)half << 16);
}

uint16_t dtype_f32_to_bf16(float value)
{
    uint32_t bits = float_bits(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
