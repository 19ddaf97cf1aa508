#include "devices/cpu/recurrent/recurrent.h"

#include <assert.h>
#include <string.h>

#include "devices/cpu/ops/split.h"
#include "devices/cpu/ops/weights.h"

/* RNN, GRU and LSTM (onnx Operators.md). Per direction: the input of some time steps is projected
 * to the gates by one matrix multiplication, then the steps follow one another (cell.c). Inputs are
 * first copied to [step, row, input] in the order in which the direction takes them, so that
 * layouts, directions and lengths are alike from there on. Two directions are two units of work. */

/* Inputs of the operators. */
enum { X, W, R, BIAS, LENGTHS, INITIAL_HIDDEN, INITIAL_CELL, PEEPHOLES };

/* Of the gates of a chunk of steps: a part of the second-level cache. */
#define CHUNK_BYTES (256 * 1024)

static int64_t gate_count_of(graph_op op)
{
    return op == GRAPH_OP_LSTM || op == GRAPH_OP_ROUNDED_LSTM ? 4 : op == GRAPH_OP_GRU ? 3 : 1;
}

static status prepare_matrix(cpu_prepare *p, int input, int64_t first_row, int64_t n, int64_t k,
                             recurrent_matrix *out)
{
    *out = (recurrent_matrix){
        .input = input, .offset = (size_t)(first_row * k), .k = (size_t)k, .n = (size_t)n};
    if (!p->weights || !p->inputs[input]->data || n == 0 || k == 0)
        return STATUS_OK;
    out->packed = cpu_weights_find(p->weights, p->kernels,
                                   &(cpu_weights_key){.constant = p->inputs[input],
                                                      .format = CPU_WEIGHTS_GEMM_F32,
                                                      .offset = out->offset,
                                                      .k = out->k,
                                                      .n = out->n,
                                                      .row_stride = 1,
                                                      .column_stride = out->k});
    return out->packed ? STATUS_OK : status_fail(STATUS_OUT_OF_MEMORY, "no memory to pack weights");
}

static status prepare_direction(cpu_prepare *p, const recurrent_state *s, int index,
                                recurrent_direction *d)
{
    const char *name = graph_attribute_string(p->node, "direction", "forward");
    int64_t gates = s->gate_count * s->hidden, first = index * gates;
    int64_t together = p->node->op == GRAPH_OP_GRU ? 2 * s->hidden : gates;
    d->is_reverse = index == 1 || strcmp(name, "reverse") == 0;
    status end = recurrent_find_activations(p->node, index, d);
    if (!end)
        end = prepare_matrix(p, W, first, gates, s->input, &d->project);
    if (!end)
        end = prepare_matrix(p, R, first, together, s->hidden, &d->recur[0]);
    if (!end && together < gates)
        end = prepare_matrix(p, R, first + together, gates - together, s->hidden, &d->recur[1]);
    return end;
}

static size_t place(size_t *bytes, int64_t count, size_t item_bytes)
{
    size_t at = *bytes;
    *bytes += cpu_scratch_round((size_t)count * item_bytes);
    return at;
}

static void place_scratch(cpu_prepare *p, recurrent_state *s)
{
    int64_t row_gates = s->gate_count * s->hidden, states = s->rows * s->hidden;
    int64_t step_bytes = s->rows * row_gates * (int64_t)sizeof(float);
    s->chunk_steps = step_bytes > 0 ? CHUNK_BYTES / step_bytes : s->steps;
    if (s->chunk_steps > s->steps)
        s->chunk_steps = s->steps;
    if (s->chunk_steps < 1)
        s->chunk_steps = 1;
    size_t bytes = 0;
    s->scratch.hidden = place(&bytes, states, sizeof(float));
    s->scratch.cell = place(&bytes, states, sizeof(float));
    s->scratch.spare = place(&bytes, states, sizeof(float));
    s->scratch.bias = place(&bytes, row_gates + s->hidden, sizeof(float));
    s->scratch.inputs = place(&bytes, s->chunk_steps * s->rows * s->input, sizeof(float));
    s->scratch.gates = place(&bytes, s->chunk_steps * s->rows * row_gates, sizeof(float));
    s->scratch.bytes = place(&bytes, s->rounds_states ? states : 0, sizeof(uint8_t));
    p->part_bytes = bytes;
    p->scratch_bytes = cpu_scratch_round((size_t)s->rows * sizeof(int64_t)); /* lengths */
}

static status prepare_recurrent(cpu_prepare *p)
{
    const tensor *x = p->inputs[X];
    if (x->dtype != DTYPE_F32)
        return cpu_op_fail_dtype(p->node, x->dtype);
    recurrent_state *s = arena_allocate_zeroed(p->memory, 1, sizeof *s);
    if (!s)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    s->is_batch_first = graph_attribute_int(p->node, "layout", 0) != 0;
    s->steps = x->dims[s->is_batch_first];
    s->rows = x->dims[!s->is_batch_first];
    s->input = x->dims[2];
    s->hidden = p->inputs[R]->dims[2];
    s->gate_count = gate_count_of(p->node->op);
    s->clip = graph_attribute_float(p->node, "clip", 0);
    s->couples_forget = graph_attribute_int(p->node, "input_forget", 0) != 0;
    s->resets_after = graph_attribute_int(p->node, "linear_before_reset", 0) != 0;
    s->rounds_states = p->node->op == GRAPH_OP_ROUNDED_LSTM;
    s->direction_count = (int)p->inputs[R]->dims[0];
    assert(s->direction_count == 1 || s->direction_count == 2);
    for (int i = 0; i < s->direction_count; i++) {
        status end = prepare_direction(p, s, i, &s->directions[i]);
        if (end)
            return end;
    }
    place_scratch(p, s);
    p->state = s;
    return STATUS_OK;
}

/* Where the state of a row is in initial_h, initial_c, Y_h and Y_c. */
static int64_t state_offset(const recurrent_state *s, int direction, int64_t row)
{
    return (s->is_batch_first ? row * s->direction_count + direction : direction * s->rows + row) *
           s->hidden;
}

static void load_state(const recurrent_state *s, int direction, const tensor *from, float *to)
{
    size_t bytes = (size_t)s->hidden * sizeof(float);
    for (int64_t row = 0; row < s->rows; row++, to += s->hidden)
        if (from && bytes > 0)
            memcpy(to, (const float *)from->data + state_offset(s, direction, row), bytes);
        else
            memset(to, 0, bytes);
}

static void store_state(const recurrent_state *s, int direction, const float *from, tensor *to)
{
    size_t bytes = (size_t)s->hidden * sizeof(float);
    for (int64_t row = 0; to->data && row < s->rows; row++, from += s->hidden)
        memcpy((float *)to->data + state_offset(s, direction, row), from, bytes);
}

/* [Wb, Rb] of the direction, added; of GRU with resets_after, Rb of h stays apart. */
static void add_biases(const recurrent_state *s, int direction, const tensor *from, float *to)
{
    int64_t gates = s->gate_count * s->hidden;
    memset(to, 0, (size_t)(gates + s->hidden) * sizeof(float));
    if (!from)
        return;
    const float *w = (const float *)from->data + direction * 2 * gates, *r = w + gates;
    for (int64_t i = 0; i < gates; i++)
        if (s->resets_after && i >= gates - s->hidden) {
            to[i] = w[i];
            to[i + s->hidden] = r[i];
        } else {
            to[i] = w[i] + r[i];
        }
}

static status load_lengths(const recurrent_state *s, const tensor *from, int64_t *to)
{
    for (int64_t row = 0; row < s->rows; row++) {
        to[row] = from ? ((const int32_t *)from->data)[row] : s->steps;
        if (to[row] < 0 || to[row] > s->steps)
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "sequence_lens[%lld] is %lld; the input has %lld steps",
                               (long long)row, (long long)to[row], (long long)s->steps);
    }
    return STATUS_OK;
}

/* The place in time of a row's step. */
static int64_t time_of(const recurrent_run *r, int64_t step, int64_t row)
{
    return r->direction->is_reverse ? r->lengths[row] - 1 - step : step;
}

/* Copies the input of `count` steps from `first` on; zeros where a row has ended. */
static void gather_inputs(const recurrent_run *r, int64_t first, int64_t count, float *to)
{
    const recurrent_state *s = r->state;
    const float *x = r->call->inputs[X]->data;
    size_t bytes = (size_t)s->input * sizeof(float);
    for (int64_t step = first; step < first + count; step++)
        for (int64_t row = 0; row < s->rows; row++, to += s->input) {
            int64_t t = time_of(r, step, row);
            int64_t at = s->is_batch_first ? row * s->steps + t : t * s->rows + row;
            if (step < r->lengths[row] && bytes > 0)
                memcpy(to, x + at * s->input, bytes);
            else
                memset(to, 0, bytes);
        }
}

/* Y of one step: [steps, directions, rows, hidden], or [rows, steps, directions, hidden]. */
static void store_step(const recurrent_run *r, int direction, int64_t step, float *y)
{
    const recurrent_state *s = r->state;
    size_t bytes = (size_t)s->hidden * sizeof(float);
    for (int64_t row = 0; row < s->rows; row++) {
        bool has_ended = step >= r->lengths[row];
        int64_t t = has_ended ? step : time_of(r, step, row);
        int64_t at = s->is_batch_first ? (row * s->steps + t) * s->direction_count + direction
                                       : (t * s->direction_count + direction) * s->rows + row;
        if (has_ended)
            memset(y + at * s->hidden, 0, bytes);
        else
            memcpy(y + at * s->hidden, r->hidden + row * s->hidden, bytes);
    }
}

static void step_all(const recurrent_run *r, int64_t step, float *gates)
{
    switch (r->call->node->op) {
    case GRAPH_OP_RNN:
        recurrent_step_rnn(r, step, gates);
        break;
    case GRAPH_OP_GRU:
        recurrent_step_gru(r, step, gates);
        break;
    default:
        recurrent_step_lstm(r, step, gates);
    }
}

static void run_steps(const recurrent_run *r, int direction, float *inputs, float *gates)
{
    const recurrent_state *s = r->state;
    int64_t row_gates = s->gate_count * s->hidden;
    for (int64_t first = 0; first < s->steps; first += s->chunk_steps) {
        int64_t left = s->steps - first, count = left < s->chunk_steps ? left : s->chunk_steps;
        if (cancel_check(r->call->cancel))
            return;
        gather_inputs(r, first, count, inputs);
        recurrent_multiply(r->call, &r->direction->project, count * s->rows, inputs, r->bias, gates,
                           (size_t)row_gates);
        for (int64_t i = 0; i < count; i++) {
            step_all(r, first + i, gates + i * s->rows * row_gates);
            if (r->call->outputs[0].data)
                store_step(r, direction, first + i, r->call->outputs[0].data);
        }
    }
}

/* One direction; memory as place_scratch() has placed it. */
static void run_direction(const void *context, void *memory, size_t unit)
{
    const cpu_call *c = context;
    const recurrent_state *s = c->state;
    int direction = (int)unit;
    char *scratch = memory;
    float *bias = (float *)(scratch + s->scratch.bias);
    const tensor *peepholes = cpu_input(c->inputs, c->node, PEEPHOLES);
    recurrent_run r = {.call = c,
                       .state = s,
                       .direction = &s->directions[direction],
                       .hidden = (float *)(scratch + s->scratch.hidden),
                       .cell = (float *)(scratch + s->scratch.cell),
                       .spare = (float *)(scratch + s->scratch.spare),
                       .bytes = (uint8_t *)(scratch + s->scratch.bytes),
                       .bias = bias,
                       .lengths = c->scratch};
    if (peepholes)
        r.peepholes = (const float *)peepholes->data + direction * 3 * s->hidden;
    load_state(s, direction, cpu_input(c->inputs, c->node, INITIAL_HIDDEN), r.hidden);
    load_state(s, direction, cpu_input(c->inputs, c->node, INITIAL_CELL), r.cell);
    add_biases(s, direction, cpu_input(c->inputs, c->node, BIAS), bias);
    run_steps(&r, direction, (float *)(scratch + s->scratch.inputs),
              (float *)(scratch + s->scratch.gates));
    if (c->node->output_count > 1)
        store_state(s, direction, r.hidden, &c->outputs[1]);
    if (c->node->output_count > 2)
        store_state(s, direction, r.cell, &c->outputs[2]);
}

#define STEPS_PER_NS 16 /* multiplications: most are of a vector and a matrix */

static status run_recurrent(const cpu_call *c)
{
    const recurrent_state *s = c->state;
    status end = load_lengths(s, cpu_input(c->inputs, c->node, LENGTHS), c->scratch);
    if (end || s->rows == 0 || s->hidden == 0)
        return end;
    double products = (double)(s->steps * s->rows * s->gate_count * s->hidden) *
                      (double)((s->input + s->hidden) * s->direction_count);
    cpu_split(c, products / STEPS_PER_NS, run_direction, c, (size_t)s->direction_count);
    return cancel_check(c->cancel);
}

static const cpu_op table[] = {
    {GRAPH_OP_GRU, prepare_recurrent, run_recurrent, CPU_WIDEN_FLOATS, false},
    {GRAPH_OP_LSTM, prepare_recurrent, run_recurrent, CPU_WIDEN_FLOATS, false},
    {GRAPH_OP_RNN, prepare_recurrent, run_recurrent, CPU_WIDEN_FLOATS, false},
    {GRAPH_OP_ROUNDED_LSTM, prepare_recurrent, run_recurrent, 0, false},
};

const cpu_op_family cpu_ops_recurrent = {table, sizeof table / sizeof table[0]};
