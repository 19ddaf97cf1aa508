#include <stdlib.h>
#include <string.h>

#include "devices/cpu/dynamic/run.h"

/* Loop and Scan (onnx Operators.md). Inputs of a body: its own, then what it captures of the graphs
 * around it (graph/onnx/closure.c). */

/* Outputs of all steps, which become one tensor. */
typedef struct collected {
    item *items;
    int64_t count, max;
} collected;

static status collect(const dynamic_run *r, collected *c, item *from)
{
    int64_t bytes = r->memory.bytes + (c->count + 1) * (int64_t)sizeof *from;
    if (bytes > r->budget.activation_bytes_max)
        return status_fail(STATUS_TOO_LARGE, "the outputs of %lld steps take more than the budget",
                           (long long)c->count);
    if (c->count == c->max) {
        int64_t most = c->max ? 2 * c->max : 16;
        item *more = realloc(c->items, (size_t)most * sizeof more[0]);
        if (!more)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %lld steps", (long long)most);
        c->items = more;
        c->max = most;
    }
    c->items[c->count++] = *from;
    *from = (item){0};
    return STATUS_OK;
}

/* One after the other along a new axis; the last step first where `is_reverse`. Of no steps, the
 * shape is what the body's output declares. */
static status stack(dynamic_run *r, const graph_node *node, const collected *c, int axis,
                    bool is_reverse, const graph_value *declared, item *out)
{
    tensor shape = {.dtype = declared->has_dtype ? declared->dtype : DTYPE_F32};
    if (c->count > 0)
        shape = c->items[0].tensor;
    else
        for (shape.rank = 0; shape.rank < declared->shape.rank; shape.rank++)
            shape.dims[shape.rank] = declared->shape.dims[shape.rank].is_unknown
                                         ? 0
                                         : declared->shape.dims[shape.rank].constant;
    for (int64_t i = 0; i < c->count; i++)
        if (c->items[i].kind != ITEM_TENSOR || c->items[i].tensor.dtype != shape.dtype ||
            !tensor_same_shape(&c->items[i].tensor, &shape))
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "node \"%s\" (%s): steps have outputs of different shapes",
                               node->name, graph_op_title(node->op));
    axis = axis < 0 ? axis + shape.rank + 1 : axis;
    if (axis < 0 || axis > shape.rank || shape.rank == TENSOR_RANK_MAX)
        return status_fail(STATUS_INVALID_ARGUMENT, "node \"%s\" (%s): axis %d of rank %d",
                           node->name, graph_op_title(node->op), axis, shape.rank);
    tensor whole = shape;
    size_t bytes = dtype_bytes(shape.dtype);
    memmove(&whole.dims[axis + 1], &shape.dims[axis],
            (size_t)(shape.rank - axis) * sizeof shape.dims[0]);
    whole.dims[axis] = c->count;
    whole.rank++;
    size_t outer = 1, inner = bytes;
    for (int i = 0; i < shape.rank; i++)
        *(i < axis ? &outer : &inner) *= (size_t)shape.dims[i];
    status s = tensor_set_shape(&whole, whole.dtype, whole.rank, whole.dims);
    if (!s)
        s = item_allocate(&r->memory, &whole, out);
    char *to = s ? NULL : out->tensor.data;
    for (size_t o = 0; !s && inner > 0 && o < outer; o++)
        for (int64_t i = 0; i < c->count; i++, to += inner) {
            const item *from = &c->items[is_reverse ? c->count - 1 - i : i];
            memcpy(to, (const char *)from->tensor.data + o * inner, inner);
        }
    return s;
}

/* Runs of a body: its inputs, its outputs, and what is kept of them. */
typedef struct body_runs {
    const graph *body;
    dynamic_forms *forms;
    dynamic_form *form; /* of the first step; NULL: the one for any inputs */
    bool has_run;
    item *inputs, *outputs;
    int first_state, state_count; /* inputs that the outputs from first_result on replace */
    int first_result;
    int first_captured;   /* input: the same in all steps from there on */
    collected *collected; /* of the other outputs */
    int collected_count;
} body_runs;

static status open_runs(dynamic_run *r, body_runs *b, const graph_node *node)
{
    b->forms = dynamic_forms_of(r->program, b->body);
    size_t in = (size_t)b->body->input_count, out = (size_t)b->body->output_count;
    b->inputs = calloc(in + out + 1, sizeof b->inputs[0]);
    b->collected = calloc(out + 1, sizeof b->collected[0]);
    if (!b->inputs || !b->collected)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to run \"%s\"", node->name);
    b->outputs = b->inputs + in;
    return STATUS_OK;
}

static void close_runs(body_runs *b)
{
    for (int i = 0; b->inputs && i < b->body->input_count + b->body->output_count; i++)
        item_release(&b->inputs[i]);
    for (int k = 0; b->collected && k < b->collected_count; k++) {
        for (int64_t i = 0; i < b->collected[k].count; i++)
            item_release(&b->collected[k].items[i]);
        free(b->collected[k].items);
    }
    if (b->forms)
        dynamic_forms_release(b->forms, b->form);
    free(b->inputs);
    free(b->collected);
}

/* Whether the states keep their shapes, as far as the form tells. */
static bool is_steady(const body_runs *b)
{
    const graph *g = b->form->graph;
    for (int i = 0; i < b->state_count; i++) {
        const graph_value *to = &g->values[g->outputs[b->first_result + i]];
        const tensor *from = &b->form->shapes[b->first_state + i];
        bool is_same = to->has_dtype && to->dtype == from->dtype && to->shape.rank == from->rank;
        for (int d = 0; is_same && d < from->rank; d++)
            is_same = to->shape.dims[d].constant == from->dims[d];
        if (!is_same)
            return false;
    }
    return true;
}

/* All steps run by one form: a body whose states change their shapes, by the one for any inputs. */
static status choose_form(dynamic_run *r, body_runs *b)
{
    status s = dynamic_find_form(r, b->forms, b->inputs, b->first_captured, &b->form);
    if (b->form && !is_steady(b)) {
        dynamic_forms_release(b->forms, b->form);
        b->form = NULL;
    }
    b->has_run = true;
    return s;
}

static status run_once(dynamic_run *r, body_runs *b)
{
    status s = b->has_run ? STATUS_OK : choose_form(r, b);
    if (!s)
        s = dynamic_run_form(r, b->form ? b->form : b->forms->single, b->inputs, b->outputs);
    for (int i = 0; !s && i < b->state_count; i++) {
        item_release(&b->inputs[b->first_state + i]);
        b->inputs[b->first_state + i] = b->outputs[b->first_result + i];
        b->outputs[b->first_result + i] = (item){0};
    }
    for (int k = 0; !s && k < b->collected_count; k++)
        s = collect(r, &b->collected[k], &b->outputs[b->first_result + b->state_count + k]);
    return s;
}

static void take_states(body_runs *b, int output_count, item *outputs)
{
    for (int i = 0; i < b->state_count && i < output_count; i++) {
        outputs[i] = b->inputs[b->first_state + i];
        b->inputs[b->first_state + i] = (item){0};
    }
}

static status fail_counts(const graph_node *node, const graph *body)
{
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "node \"%s\" (%s): %d inputs and %d outputs do not fit a body of %d and %d",
                       node->name, graph_op_title(node->op), node->input_count, node->output_count,
                       body->input_count, body->output_count);
}

static status make_scalar(dynamic_run *r, dtype type, int64_t value, item *out)
{
    tensor shape = {.dtype = type};
    item_release(out);
    status s = item_allocate(&r->memory, &shape, out);
    if (!s && type == DTYPE_BOOL)
        *(bool *)out->tensor.data = value != 0;
    else if (!s)
        *(int64_t *)out->tensor.data = value;
    return s;
}

static status run_steps(dynamic_run *r, const graph_node *node, body_runs *b, int64_t most,
                        int64_t condition)
{
    status s = STATUS_OK;
    for (int64_t i = 0; !s && i < most && condition; i++) {
        s = make_scalar(r, DTYPE_I64, i, &b->inputs[0]);
        if (!s)
            s = make_scalar(r, DTYPE_BOOL, condition, &b->inputs[1]);
        if (!s)
            s = run_once(r, b);
        if (!s)
            s = dynamic_read_integer(node, b->outputs, 0, &condition);
        item_release(&b->outputs[0]);
    }
    return s;
}

status dynamic_run_loop(dynamic_run *r, const graph_node *node, const item *inputs, item *outputs)
{
    int captured = (int)graph_attribute_int(node, "captured", 0);
    body_runs b = {.body = graph_find_attribute(node, "body")->graph,
                   .first_state = 2,
                   .state_count = node->input_count - captured - 2,
                   .first_captured = node->input_count - captured,
                   .first_result = 1};
    b.collected_count = b.body->output_count - 1 - b.state_count;
    int64_t most = INT64_MAX, condition = 1;
    if (b.state_count < 0 || b.collected_count < 0 || b.body->input_count != node->input_count ||
        node->output_count > b.body->output_count - 1)
        return fail_counts(node, b.body);
    status s =
        inputs[0].kind == ITEM_NONE ? STATUS_OK : dynamic_read_integer(node, inputs, 0, &most);
    if (!s && inputs[1].kind != ITEM_NONE)
        s = dynamic_read_integer(node, inputs, 1, &condition);
    if (!s)
        s = open_runs(r, &b, node);
    for (int i = 2; !s && i < node->input_count; i++)
        b.inputs[i] = item_retain(&inputs[i]);
    if (!s)
        s = run_steps(r, node, &b, most, condition);
    if (!s)
        take_states(&b, node->output_count, outputs);
    for (int k = 0; !s && b.state_count + k < node->output_count; k++)
        s = stack(r, node, &b.collected[k], 0, false,
                  &b.body->values[b.body->outputs[1 + b.state_count + k]],
                  &outputs[b.state_count + k]);
    close_runs(&b);
    return s;
}

static int64_t listed(const graph_node *node, const char *name, int i)
{
    const graph_attribute *a = graph_find_attribute(node, name);
    return a && (size_t)i < a->count ? a->ints[i] : 0;
}

/* Element `step` of an input along its axis. */
static status slice_step(dynamic_run *r, const graph_node *node, const item *from, int k,
                         int64_t step, int64_t steps, item *out)
{
    const tensor *t = &from->tensor;
    int64_t axis = listed(node, "scan_input_axes", k);
    axis = axis < 0 ? axis + t->rank : axis;
    if (listed(node, "scan_input_directions", k) == 1)
        step = steps - 1 - step;
    tensor shape = *t;
    shape.rank--;
    memmove(&shape.dims[axis], &t->dims[axis + 1], (size_t)(shape.rank - axis) * sizeof t->dims[0]);
    size_t outer = 1, inner = dtype_bytes(t->dtype);
    for (int i = 0; i < t->rank; i++)
        if (i != axis)
            *(i < axis ? &outer : &inner) *= (size_t)t->dims[i];
    item_release(out);
    status s = item_allocate(&r->memory, &shape, out);
    for (size_t o = 0; !s && inner > 0 && o < outer; o++)
        memcpy((char *)out->tensor.data + o * inner,
               (const char *)t->data + (o * (size_t)steps + (size_t)step) * inner, inner);
    return s;
}

/* The steps of a Scan: the same along the axis of each of its inputs. */
static status count_steps(const graph_node *node, const item *inputs, int first, int count,
                          int64_t *steps)
{
    *steps = -1;
    for (int k = 0; k < count; k++) {
        status s = dynamic_expect_tensor(node, inputs, first + k);
        if (s)
            return s;
        const tensor *t = &inputs[first + k].tensor;
        int64_t axis = listed(node, "scan_input_axes", k);
        axis = axis < 0 ? axis + t->rank : axis;
        if (axis < 0 || axis >= t->rank || (*steps >= 0 && t->dims[axis] != *steps))
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "node \"%s\" (Scan): its inputs do not have the same steps",
                               node->name);
        *steps = t->dims[axis];
    }
    return STATUS_OK;
}

status dynamic_run_scan(dynamic_run *r, const graph_node *node, const item *inputs, item *outputs)
{
    int captured = (int)graph_attribute_int(node, "captured", 0);
    int64_t scanned = graph_attribute_int(node, "num_scan_inputs", 0), steps;
    int own = node->input_count - captured;
    body_runs b = {.body = graph_find_attribute(node, "body")->graph};
    if (scanned < 1 || scanned > own || b.body->input_count != node->input_count)
        return fail_counts(node, b.body);
    b.state_count = own - (int)scanned;
    b.first_captured = own;
    b.collected_count = b.body->output_count - b.state_count;
    if (b.collected_count < 0 || node->output_count > b.body->output_count)
        return fail_counts(node, b.body);
    status s = count_steps(node, inputs, b.state_count, (int)scanned, &steps);
    if (!s)
        s = open_runs(r, &b, node);
    for (int i = 0; !s && i < node->input_count; i++)
        if (i < b.state_count || i >= own)
            b.inputs[i] = item_retain(&inputs[i]);
    for (int64_t step = 0; !s && step < steps; step++) {
        for (int k = 0; !s && k < scanned; k++)
            s = slice_step(r, node, &inputs[b.state_count + k], k, step, steps,
                           &b.inputs[b.state_count + k]);
        if (!s)
            s = run_once(r, &b);
    }
    if (!s)
        take_states(&b, node->output_count, outputs);
    for (int k = 0; !s && b.state_count + k < node->output_count; k++)
        s = stack(r, node, &b.collected[k], (int)listed(node, "scan_output_axes", k),
                  listed(node, "scan_output_directions", k) == 1,
                  &b.body->values[b.body->outputs[b.state_count + k]], &outputs[b.state_count + k]);
    close_runs(&b);
    return s;
}
