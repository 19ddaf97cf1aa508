#include <string.h>

#include "devices/cpu/dynamic/run.h"

/* Sequences of tensors, and optionals (onnx Operators.md). A sequence is never changed: an operator
 * makes another one, whose items share their memory. */

static status fail_position(const graph_node *node, int64_t position, int64_t count)
{
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "node \"%s\" (%s): position %lld of a sequence of %lld", node->name,
                       graph_op_title(node->op), (long long)position, (long long)count);
}

static status expect_sequence(const graph_node *node, const item *inputs)
{
    if (inputs[0].kind == ITEM_SEQUENCE)
        return STATUS_OK;
    return status_fail(STATUS_INVALID_ARGUMENT, "node \"%s\" (%s): input 0 is no sequence",
                       node->name, graph_op_title(node->op));
}

/* Input `i` as a position below `limit`, counted from the end where negative; `otherwise` where it
 * is absent. */
static status read_position(const graph_node *node, const item *inputs, int i, int64_t otherwise,
                            int64_t limit, int64_t *out)
{
    int64_t at = otherwise, count = inputs[0].sequence->count;
    status s = STATUS_OK;
    if (i < node->input_count && inputs[i].kind != ITEM_NONE)
        s = dynamic_read_integer(node, inputs, i, &at);
    *out = at < 0 ? at + count : at;
    return s || (*out >= 0 && *out < limit) ? s : fail_position(node, at, count);
}

static status run_construct(dynamic_run *r, const graph_node *node, const item *inputs,
                            item *outputs)
{
    (void)r;
    status s = item_allocate_sequence(node->input_count, &outputs[0]);
    for (int i = 0; !s && i < node->input_count; i++) {
        s = dynamic_expect_tensor(node, inputs, i);
        if (!s)
            outputs[0].sequence->items[i] = item_retain(&inputs[i]);
    }
    return s;
}

static status run_at(dynamic_run *r, const graph_node *node, const item *inputs, item *outputs)
{
    (void)r;
    int64_t at;
    status s = expect_sequence(node, inputs);
    if (!s)
        s = read_position(node, inputs, 1, 0, inputs[0].sequence->count, &at);
    if (!s)
        outputs[0] = item_retain(&inputs[0].sequence->items[at]);
    return s;
}

static status run_insert(dynamic_run *r, const graph_node *node, const item *inputs, item *outputs)
{
    (void)r;
    int64_t at;
    status s = expect_sequence(node, inputs);
    if (!s)
        s = dynamic_expect_tensor(node, inputs, 1);
    if (s)
        return s;
    const item_sequence *from = inputs[0].sequence;
    s = read_position(node, inputs, 2, from->count, from->count + 1, &at);
    if (!s)
        s = item_allocate_sequence(from->count + 1, &outputs[0]);
    for (int64_t i = 0; !s && i <= from->count; i++)
        outputs[0].sequence->items[i] =
            item_retain(i == at ? &inputs[1] : &from->items[i - (i > at)]);
    return s;
}

static status run_erase(dynamic_run *r, const graph_node *node, const item *inputs, item *outputs)
{
    (void)r;
    int64_t at;
    status s = expect_sequence(node, inputs);
    if (s)
        return s;
    const item_sequence *from = inputs[0].sequence;
    s = read_position(node, inputs, 1, -1, from->count, &at);
    if (!s)
        s = item_allocate_sequence(from->count - 1, &outputs[0]);
    for (int64_t i = 0; !s && i + 1 < from->count; i++)
        outputs[0].sequence->items[i] = item_retain(&from->items[i + (i >= at)]);
    return s;
}

static status make_number(dynamic_run *r, dtype type, int64_t value, item *out)
{
    tensor shape = {.dtype = type};
    status s = item_allocate(&r->memory, &shape, out);
    if (!s)
        tensor_set_number(&out->tensor, 0, (double)value);
    return s;
}

static status run_length(dynamic_run *r, const graph_node *node, const item *inputs, item *outputs)
{
    status s = expect_sequence(node, inputs);
    return s ? s : make_number(r, DTYPE_I64, inputs[0].sequence->count, &outputs[0]);
}

/* Concat, after Unsqueeze of each item where there is a new axis. */
static status run_concat(dynamic_run *r, const graph_node *node, const item *inputs, item *outputs)
{
    status s = expect_sequence(node, inputs);
    if (s)
        return s;
    const item_sequence *from = inputs[0].sequence;
    bool is_new = graph_attribute_int(node, "new_axis", 0) != 0;
    int64_t axis = graph_attribute_int(node, "axis", 0), one = 1;
    item parts;
    if (from->count == 0 || from->count > INT32_MAX)
        return fail_position(node, 0, from->count);
    if ((s = item_allocate_sequence(from->count, &parts)))
        return s;
    tensor axes = {.dtype = DTYPE_I64, .rank = 1, .dims = {one}, .data = &axis};
    for (int64_t i = 0; !s && i < from->count; i++) {
        const item pair[] = {from->items[i], item_borrow(&axes)};
        if (is_new)
            s = dynamic_run_made(r, GRAPH_OP_UNSQUEEZE, 2, pair, 0, NULL,
                                 &parts.sequence->items[i]);
        else
            parts.sequence->items[i] = item_retain(&from->items[i]);
    }
    graph_attribute along = graph_make_int("axis", axis);
    if (!s)
        s = dynamic_run_made(r, GRAPH_OP_CONCAT, (int)from->count, parts.sequence->items, 1, &along,
                             &outputs[0]);
    item_release(&parts);
    return s;
}

/* The elements [start, end) along an axis. */
static status slice(dynamic_run *r, const item *x, int64_t axis, int64_t start, int64_t end,
                    item *out)
{
    int64_t numbers[] = {start, end, axis};
    tensor lists[3];
    item inputs[4] = {*x};
    for (int i = 0; i < 3; i++) {
        lists[i] = (tensor){.dtype = DTYPE_I64, .rank = 1, .dims = {1}, .data = &numbers[i]};
        inputs[i + 1] = item_borrow(&lists[i]);
    }
    return dynamic_run_made(r, GRAPH_OP_SLICE, 4, inputs, 0, NULL, out);
}

/* A list of lengths, which fill the axis. */
static status check_lengths(const graph_node *node, const tensor *lengths, int64_t whole,
                            int64_t *count)
{
    int64_t left = whole;
    if (!dtype_is_integer(lengths->dtype))
        return status_fail(STATUS_INVALID_ARGUMENT, "node \"%s\" (%s): lengths of type %s",
                           node->name, graph_op_title(node->op), dtype_name(lengths->dtype));
    *count = tensor_count(lengths);
    for (int64_t i = 0; i < *count; i++) {
        int64_t length = tensor_get_integer(lengths, i);
        if (length < 0 || length > left)
            return fail_position(node, length, whole);
        left -= length;
    }
    return left == 0 ? STATUS_OK : fail_position(node, whole - left, whole);
}

/* How many parts, and the length of each: a list, one length for all, or 1. */
static status read_parts(const graph_node *node, const item *inputs, int64_t whole, int64_t *count,
                         int64_t *each)
{
    *each = 1;
    if (node->input_count > 1 && inputs[1].kind != ITEM_NONE) {
        status s = dynamic_expect_tensor(node, inputs, 1);
        if (s)
            return s;
        if (inputs[1].tensor.rank > 0)
            return check_lengths(node, &inputs[1].tensor, whole, count);
        if ((s = dynamic_read_integer(node, inputs, 1, each)))
            return s;
    }
    if (*each < 1)
        return fail_position(node, *each, whole);
    *count = whole / *each + (whole % *each != 0);
    return STATUS_OK;
}

static status run_split(dynamic_run *r, const graph_node *node, const item *inputs, item *outputs)
{
    status s = dynamic_expect_tensor(node, inputs, 0);
    if (s)
        return s;
    const tensor *x = &inputs[0].tensor;
    bool has_lengths = node->input_count > 1 && inputs[1].kind != ITEM_NONE;
    bool drops_axis = !has_lengths && graph_attribute_int(node, "keepdims", 1) == 0;
    int64_t axis = graph_attribute_int(node, "axis", 0), count = 0, each = 1, start = 0;
    axis = axis < 0 ? axis + x->rank : axis;
    if (axis < 0 || axis >= x->rank)
        return fail_position(node, axis, x->rank);
    s = read_parts(node, inputs, x->dims[axis], &count, &each);
    if (!s)
        s = item_allocate_sequence(count, &outputs[0]);
    for (int64_t i = 0; !s && i < count; i++) {
        int64_t left = x->dims[axis] - start;
        int64_t length = has_lengths && inputs[1].tensor.rank > 0
                             ? tensor_get_integer(&inputs[1].tensor, i)
                         : each < left ? each
                                       : left;
        item *part = &outputs[0].sequence->items[i];
        s = slice(r, &inputs[0], axis, start, start + length, part);
        start += length;
        if (s || !drops_axis)
            continue;
        memmove(&part->tensor.dims[axis], &part->tensor.dims[axis + 1],
                (size_t)(x->rank - 1 - axis) * sizeof x->dims[0]);
        part->tensor.rank--;
    }
    return s;
}

static status run_optional(dynamic_run *r, const graph_node *node, const item *inputs,
                           item *outputs)
{
    (void)r;
    if (node->input_count > 0 && inputs[0].kind != ITEM_NONE)
        outputs[0] = item_retain(&inputs[0]);
    else
        outputs[0] = (item){.kind = ITEM_EMPTY};
    return STATUS_OK;
}

static status run_get(dynamic_run *r, const graph_node *node, const item *inputs, item *outputs)
{
    (void)r;
    if (inputs[0].kind != ITEM_TENSOR && inputs[0].kind != ITEM_SEQUENCE)
        return status_fail(STATUS_INVALID_ARGUMENT, "node \"%s\" (%s): the optional is empty",
                           node->name, graph_op_title(node->op));
    outputs[0] = item_retain(&inputs[0]);
    return STATUS_OK;
}

static status run_has(dynamic_run *r, const graph_node *node, const item *inputs, item *outputs)
{
    bool has =
        node->input_count > 0 && (inputs[0].kind == ITEM_TENSOR || inputs[0].kind == ITEM_SEQUENCE);
    return make_number(r, DTYPE_BOOL, has, &outputs[0]);
}

dynamic_fn dynamic_find_sequence(graph_op op)
{
    switch (op) {
    case GRAPH_OP_CONCAT_FROM_SEQUENCE:
        return run_concat;
    case GRAPH_OP_OPTIONAL:
        return run_optional;
    case GRAPH_OP_OPTIONAL_GET_ELEMENT:
        return run_get;
    case GRAPH_OP_OPTIONAL_HAS_ELEMENT:
        return run_has;
    case GRAPH_OP_SEQUENCE_AT:
        return run_at;
    case GRAPH_OP_SEQUENCE_CONSTRUCT:
    case GRAPH_OP_SEQUENCE_EMPTY:
        return run_construct;
    case GRAPH_OP_SEQUENCE_ERASE:
        return run_erase;
    case GRAPH_OP_SEQUENCE_INSERT:
        return run_insert;
    case GRAPH_OP_SEQUENCE_LENGTH:
        return run_length;
    case GRAPH_OP_SPLIT_TO_SEQUENCE:
        return run_split;
    default:
        return NULL;
    }
}
