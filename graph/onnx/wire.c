#include "graph/onnx/importer.h"

/* The Protocol Buffers wire format (protobuf.dev/programming-guides/encoding), as far as it takes
 * to find messages that nest. */

typedef enum message_kind { MODEL, GRAPH, FUNCTION, NODE, ATTRIBUTE, LEAF } message_kind;

static message_kind kind_of_field(message_kind parent, uint64_t field)
{
    switch (parent) {
    case MODEL:
        return field == 7 ? GRAPH : field == 25 ? FUNCTION : LEAF;
    case GRAPH:
        return field == 1 ? NODE : LEAF;
    case FUNCTION:
        return field == 7 ? NODE : field == 11 ? ATTRIBUTE : LEAF;
    case NODE:
        return field == 5 ? ATTRIBUTE : LEAF;
    case ATTRIBUTE:
        return field == 6 ? GRAPH : LEAF;
    case LEAF:
        break;
    }
    return LEAF;
}

static bool read_varint(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    uint64_t value = 0;
    for (int shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *out = value;
            return true;
        }
    }
    return false;
}

static status fail_broken(void)
{
    return status_fail(STATUS_CORRUPT, "not an ONNX model, or cut off: fetch or export it again");
}

static status check(const uint8_t *at, const uint8_t *end, message_kind kind, int depth)
{
    if (depth > 3 * ONNX_NESTING_MAX) /* graph, node, attribute */
        return status_fail(STATUS_CORRUPT, "graphs are nested deeper than %d", ONNX_NESTING_MAX);
    while (at < end) {
        uint64_t tag, length;
        if (!read_varint(&at, end, &tag))
            return fail_broken();
        switch (tag & 7) {
        case 0:
            if (!read_varint(&at, end, &length))
                return fail_broken();
            continue;
        case 1:
            length = 8;
            break;
        case 2:
            if (!read_varint(&at, end, &length))
                return fail_broken();
            break;
        case 5:
            length = 4;
            break;
        default:
            return fail_broken();
        }
        if (length > (uint64_t)(end - at))
            return fail_broken();
        message_kind inner = kind_of_field(kind, tag >> 3);
        if ((tag & 7) == 2 && inner != LEAF) {
            status s = check(at, at + length, inner, depth + 1);
            if (s)
                return s;
        }
        at += length;
    }
    return STATUS_OK;
}

status onnx_check_nesting(const uint8_t *data, size_t bytes)
{
    return check(data, data + bytes, MODEL, 0);
}
