#include "devices/pjrt/protocol/hlo_summary.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A walker over the protobuf wire format: only a few of the fields of large messages are of
 * interest, and unknown ones are skipped, which keeps this independent of the release of the
 * compiler. Field numbers: xla/service/hlo.proto, xla/xla_data.proto. */

typedef struct wire {
    const unsigned char *at, *end;
} wire;

typedef struct wire_field {
    unsigned number, type; /* 0 varint, 1 eight bytes, 2 length-delimited, 5 four bytes */
    uint64_t value;
    wire body; /* type 2 */
} wire_field;

enum {
    MODULE_COMPUTATIONS = 3,
    WITH_CONFIG_MODULE = 1,
    COMPUTATION_INSTRUCTIONS = 2,
    INSTRUCTION_OPCODE = 2,
    INSTRUCTION_SHAPE = 3,
    INSTRUCTION_ID = 35,
    INSTRUCTION_OPERAND_IDS = 36,
    INSTRUCTION_BACKEND_CONFIG = 43,
    SHAPE_ELEMENT_TYPE = 2,
    SHAPE_DIMENSIONS = 3,
    SHAPE_TUPLE = 4,
    MODULE_PROGRAM_SHAPE = 4,
    PROGRAM_PARAMETERS = 1,
    PROGRAM_RESULT = 2,
};

enum { ELEMENT_S8 = 2, ELEMENT_U8 = 6, ELEMENT_F32 = 11, ELEMENT_BF16 = 16 };

static bool read_varint(wire *w, uint64_t *out)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && w->at < w->end; shift += 7) {
        unsigned char byte = *w->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *out = value;
            return true;
        }
    }
    return false;
}

/* 1: a field, 0: the end, -1: broken. */
static int next_field(wire *w, wire_field *f)
{
    uint64_t tag;
    if (w->at == w->end)
        return 0;
    if (!read_varint(w, &tag) || tag >> 3 == 0 || tag >> 3 > 1u << 29)
        return -1;
    *f = (wire_field){.number = (unsigned)(tag >> 3), .type = (unsigned)(tag & 7)};
    size_t left = (size_t)(w->end - w->at), skip;
    switch (f->type) {
    case 0:
        return read_varint(w, &f->value) ? 1 : -1;
    case 1:
        skip = 8;
        break;
    case 2:
        if (!read_varint(w, &f->value) || f->value > (uint64_t)(w->end - w->at))
            return -1;
        skip = f->value;
        left = (size_t)(w->end - w->at);
        f->body = (wire){w->at, w->at + skip};
        break;
    case 5:
        skip = 4;
        break;
    default:
        return -1;
    }
    if (skip > left)
        return -1;
    w->at += skip;
    return 1;
}

/* Compilers write the largest number where they have no estimate. */
#define CYCLES_MAX INT64_C(1000000000000000)

typedef struct instruction {
    int64_t id, operands[2];
    int operand_count, element_type;
    bool is_product;
} instruction;

static void add_cycles(hlo_summary *out, wire config)
{
    static const char key[] = "\"estimated_cycles\":\"";
    size_t key_bytes = sizeof key - 1;
    for (const unsigned char *p = config.at; p + key_bytes < config.end; p++)
        if (memcmp(p, key, key_bytes) == 0) {
            int64_t cycles = 0;
            for (p += key_bytes; p < config.end && *p >= '0' && *p <= '9' && cycles < CYCLES_MAX;
                 p++)
                cycles = cycles * 10 + (*p - '0');
            if (cycles >= CYCLES_MAX)
                out->unestimated++;
            else if (out->estimated_cycles < CYCLES_MAX)
                out->estimated_cycles += cycles;
            return;
        }
}

static void add_operand(instruction *i, uint64_t id)
{
    if (i->operand_count < 2)
        i->operands[i->operand_count] = (int64_t)id;
    i->operand_count++;
}

static bool is_text(wire body, const char *text)
{
    return (size_t)(body.end - body.at) == strlen(text) && memcmp(body.at, text, strlen(text)) == 0;
}

static bool read_instruction(wire w, instruction *out, hlo_summary *sums)
{
    wire_field f, inner;
    int more;
    *out = (instruction){0};
    while ((more = next_field(&w, &f)) > 0) {
        if (f.number == INSTRUCTION_OPCODE && f.type == 2)
            out->is_product = is_text(f.body, "dot") || is_text(f.body, "convolution");
        else if (f.number == INSTRUCTION_ID && f.type == 0)
            out->id = (int64_t)f.value;
        else if (f.number == INSTRUCTION_OPERAND_IDS && f.type == 0)
            add_operand(out, f.value);
        else if (f.number == INSTRUCTION_OPERAND_IDS && f.type == 2)
            for (uint64_t id; f.body.at < f.body.end && read_varint(&f.body, &id);)
                add_operand(out, id);
        else if (f.number == INSTRUCTION_BACKEND_CONFIG && f.type == 2)
            add_cycles(sums, f.body);
        else if (f.number == INSTRUCTION_SHAPE && f.type == 2)
            for (wire shape = f.body; next_field(&shape, &inner) > 0;)
                if (inner.number == SHAPE_ELEMENT_TYPE && inner.type == 0)
                    out->element_type = (int)inner.value;
    }
    return more == 0;
}

static int element_type_of(const instruction *list, int count, int64_t id)
{
    for (int i = 0; i < count; i++)
        if (list[i].id == id)
            return list[i].element_type;
    return 0;
}

static void count_products(const instruction *list, int count, hlo_summary *out)
{
    for (int i = 0; i < count; i++) {
        if (!list[i].is_product || list[i].operand_count < 2)
            continue;
        int a = element_type_of(list, count, list[i].operands[0]);
        int b = element_type_of(list, count, list[i].operands[1]);
        out->products++;
        if ((a == ELEMENT_S8 || a == ELEMENT_U8) && (b == ELEMENT_S8 || b == ELEMENT_U8))
            out->products_s8++;
        else if (a == ELEMENT_BF16 && b == ELEMENT_BF16)
            out->products_bf16++;
        else if (a == ELEMENT_F32 && b == ELEMENT_F32)
            out->products_f32++;
    }
}

static bool read_computation(wire w, hlo_summary *out)
{
    instruction *list = NULL;
    int count = 0, capacity = 0, more;
    wire_field f;
    bool is_good = true;
    while (is_good && (more = next_field(&w, &f)) != 0) {
        if (more < 0) {
            is_good = false;
        } else if (f.number == COMPUTATION_INSTRUCTIONS && f.type == 2) {
            if (count == capacity) {
                capacity = capacity ? 2 * capacity : 64;
                instruction *grown = realloc(list, (size_t)capacity * sizeof *list);
                if (grown == NULL) {
                    is_good = false;
                    break;
                }
                list = grown;
            }
            is_good = read_instruction(f.body, &list[count++], out);
        }
    }
    count_products(list, count, out);
    out->instructions += count;
    free(list);
    return is_good;
}

static bool read_module(wire w, hlo_summary *out)
{
    wire_field f;
    int more, computations = 0;
    while ((more = next_field(&w, &f)) > 0)
        if (f.number == MODULE_COMPUTATIONS && f.type == 2) {
            if (!read_computation(f.body, out))
                return false;
            computations++;
        }
    return more == 0 && computations > 0 && out->instructions > 0;
}

status hlo_summarise(const void *data, size_t bytes, hlo_summary *out)
{
    wire all = {data, (const unsigned char *)data + bytes}, w = all;
    hlo_summary made = {0};
    wire_field f;
    /* In the wrapped form the module is field 1, a message; in the bare one field 1 is a name,
     * which is no module. */
    if (next_field(&w, &f) > 0 && f.number == WITH_CONFIG_MODULE && f.type == 2 &&
        read_module(f.body, &made)) {
        *out = made;
        return STATUS_OK;
    }
    made = (hlo_summary){0};
    if (!read_module(all, &made))
        return status_fail(STATUS_CORRUPT, "the optimized program is not an HloModuleProto");
    *out = made;
    return STATUS_OK;
}

/* --- signature --- */

static bool dtype_of_element(uint64_t type, dtype *out)
{
    /* PrimitiveType of xla/xla_data.proto; 0 is none, so BOOL is written apart. */
    static const struct {
        uint64_t number;
        dtype type;
    } known[] = {{1, DTYPE_BOOL}, {2, DTYPE_I8},   {3, DTYPE_I16},  {4, DTYPE_I32}, {5, DTYPE_I64},
                 {6, DTYPE_U8},   {7, DTYPE_U16},  {8, DTYPE_U32},  {9, DTYPE_U64}, {10, DTYPE_F16},
                 {11, DTYPE_F32}, {12, DTYPE_F64}, {16, DTYPE_BF16}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].number == type) {
            *out = known[i].type;
            return true;
        }
    return false;
}

static bool add_dim(hlo_shape *s, uint64_t size)
{
    if (s->rank == TENSOR_RANK_MAX || size > INT64_MAX)
        return false;
    s->dims[s->rank++] = (int64_t)size;
    return true;
}

static bool read_shape(wire w, hlo_shape *out)
{
    wire_field f;
    int more;
    uint64_t size;
    *out = (hlo_shape){0};
    while ((more = next_field(&w, &f)) > 0) {
        if (f.number == SHAPE_ELEMENT_TYPE && f.type == 0)
            out->has_dtype = dtype_of_element(f.value, &out->dtype);
        else if (f.number == SHAPE_DIMENSIONS && f.type == 0 && !add_dim(out, f.value))
            return false;
        else if (f.number == SHAPE_DIMENSIONS && f.type == 2)
            while (f.body.at < f.body.end)
                if (!read_varint(&f.body, &size) || !add_dim(out, size))
                    return false;
    }
    return more == 0;
}

static bool add_shape(hlo_signature *s, wire w)
{
    int count = s->parameter_count + s->result_count;
    hlo_shape *grown = realloc(s->shapes, ((size_t)count + 1) * sizeof *grown);
    if (grown == NULL)
        return false;
    s->shapes = grown;
    return read_shape(w, &s->shapes[count]);
}

/* A tuple's members, or the one array. */
static bool read_result(hlo_signature *s, wire w)
{
    wire whole = w;
    wire_field f;
    int more, members = 0;
    for (; (more = next_field(&w, &f)) > 0;)
        if (f.number == SHAPE_TUPLE && f.type == 2) {
            if (!add_shape(s, f.body))
                return false;
            s->result_count++;
            members++;
        }
    if (more == 0 && members == 0) {
        if (!add_shape(s, whole))
            return false;
        s->result_count++;
    }
    return more == 0;
}

static bool read_program_shape(wire w, hlo_signature *out)
{
    wire_field f;
    int more;
    wire result = {0};
    while ((more = next_field(&w, &f)) > 0)
        if (f.number == PROGRAM_PARAMETERS && f.type == 2) {
            if (!add_shape(out, f.body))
                return false;
            out->parameter_count++;
        } else if (f.number == PROGRAM_RESULT && f.type == 2) {
            result = f.body; /* after the parameters, whatever their order in the message */
        }
    return more == 0 && result.at != NULL && read_result(out, result);
}

static bool find_program_shape(wire w, hlo_signature *out)
{
    wire_field f;
    while (next_field(&w, &f) > 0)
        if (f.number == MODULE_PROGRAM_SHAPE && f.type == 2)
            return read_program_shape(f.body, out);
    return false;
}

status hlo_read_signature(const void *data, size_t bytes, hlo_signature *out)
{
    wire all = {data, (const unsigned char *)data + bytes}, w = all;
    wire_field f;
    hlo_signature made = {0};
    /* As in hlo_summarise: wrapped with its config, or bare. */
    bool is_wrapped = next_field(&w, &f) > 0 && f.number == WITH_CONFIG_MODULE && f.type == 2;
    if (is_wrapped && find_program_shape(f.body, &made)) {
        *out = made;
        return STATUS_OK;
    }
    hlo_signature_dispose(&made);
    if (find_program_shape(all, &made)) {
        *out = made;
        return STATUS_OK;
    }
    hlo_signature_dispose(&made);
    return status_fail(STATUS_CORRUPT, "the optimized program has no signature");
}

void hlo_signature_dispose(hlo_signature *s)
{
    free(s->shapes);
    *s = (hlo_signature){0};
}
