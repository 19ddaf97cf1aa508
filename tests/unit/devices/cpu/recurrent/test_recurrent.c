/* RNN, GRU and LSTM against plain loops in double. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/unit/devices/cpu/case.h"

enum { STEPS = 5, ROWS = 3, INPUT = 4, HIDDEN = 6 };
static const int64_t lengths[ROWS] = {5, 0, 3};

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

typedef struct weights {
    int gates;
    const tensor *x, *w, *r, *bias, *hidden, *cell, *peepholes;
} weights;

/* The input's and the state's part of a gate, each with its bias. */
static double input_part(const weights *g, int d, int64_t t, int64_t row, int gate, int i)
{
    int at = d * g->gates * HIDDEN + gate * HIDDEN + i;
    double sum = cpu_case_get(g->bias, 2 * d * g->gates * HIDDEN + gate * HIDDEN + i);
    for (int k = 0; k < INPUT; k++)
        sum +=
            cpu_case_get(g->w, at * INPUT + k) * cpu_case_get(g->x, (t * ROWS + row) * INPUT + k);
    return sum;
}

static double state_part(const weights *g, int d, int gate, int i, const double *h)
{
    int at = d * g->gates * HIDDEN + gate * HIDDEN + i;
    double sum = cpu_case_get(g->bias, (2 * d + 1) * g->gates * HIDDEN + gate * HIDDEN + i);
    for (int k = 0; k < HIDDEN; k++)
        sum += cpu_case_get(g->r, at * HIDDEN + k) * h[k];
    return sum;
}

static double gate_of(const weights *g, int d, int64_t t, int64_t row, int gate, int i,
                      const double *h)
{
    return input_part(g, d, t, row, gate, i) + state_part(g, d, gate, i, h);
}

static void step_lstm(const weights *g, int d, int64_t t, int64_t row, double *h, double *c)
{
    double before[HIDDEN];
    memcpy(before, h, sizeof before);
    for (int i = 0; i < HIDDEN; i++) {
        const double p[3] = {cpu_case_get(g->peepholes, d * 3 * HIDDEN + i),
                             cpu_case_get(g->peepholes, d * 3 * HIDDEN + HIDDEN + i),
                             cpu_case_get(g->peepholes, d * 3 * HIDDEN + 2 * HIDDEN + i)};
        double in = sigmoid(gate_of(g, d, t, row, 0, i, before) + p[0] * c[i]);
        double forget = sigmoid(gate_of(g, d, t, row, 2, i, before) + p[2] * c[i]);
        c[i] = forget * c[i] + in * tanh(gate_of(g, d, t, row, 3, i, before));
        h[i] = sigmoid(gate_of(g, d, t, row, 1, i, before) + p[1] * c[i]) * tanh(c[i]);
    }
}

static void step_gru(const weights *g, int d, int64_t t, int64_t row, bool resets_after, double *h)
{
    double before[HIDDEN], reset[HIDDEN], scaled[HIDDEN];
    memcpy(before, h, sizeof before);
    for (int i = 0; i < HIDDEN; i++) {
        reset[i] = sigmoid(gate_of(g, d, t, row, 1, i, before));
        scaled[i] = reset[i] * before[i];
    }
    for (int i = 0; i < HIDDEN; i++) {
        double z = sigmoid(gate_of(g, d, t, row, 0, i, before));
        double candidate = resets_after ? reset[i] * state_part(g, d, 2, i, before)
                                        : state_part(g, d, 2, i, scaled);
        candidate = tanh(candidate + input_part(g, d, t, row, 2, i));
        h[i] = (1 - z) * candidate + z * before[i];
    }
}

/* Adds X, W, R, B, lengths and initial states for both directions; smaller weights keep the sums
 * near the bend of the curves. */
static weights add_inputs(cpu_case *c, int gates)
{
    int64_t rows = gates * HIDDEN;
    weights g = {.gates = gates};
    g.x = cpu_case_random(c, DTYPE_F32, DIMS(STEPS, ROWS, INPUT));
    g.w = cpu_case_random(c, DTYPE_F32, DIMS(2, rows, INPUT));
    g.r = cpu_case_random(c, DTYPE_F32, DIMS(2, rows, HIDDEN));
    g.bias = cpu_case_random(c, DTYPE_F32, DIMS(2, 2 * rows));
    cpu_case_input(c, DTYPE_I32, DIMS(ROWS),
                   (double[]){(double)lengths[0], (double)lengths[1], (double)lengths[2]});
    g.hidden = cpu_case_random(c, DTYPE_F32, DIMS(2, ROWS, HIDDEN));
    if (gates == 4) {
        g.cell = cpu_case_random(c, DTYPE_F32, DIMS(2, ROWS, HIDDEN));
        g.peepholes = cpu_case_random(c, DTYPE_F32, DIMS(2, 3 * HIDDEN));
    }
    return g;
}

static void expect_all(const cpu_case *c, const weights *g, bool resets_after)
{
    for (int d = 0; d < 2; d++)
        for (int64_t row = 0; row < ROWS; row++) {
            double h[HIDDEN], cell[HIDDEN];
            for (int i = 0; i < HIDDEN; i++) {
                h[i] = cpu_case_get(g->hidden, (d * ROWS + row) * HIDDEN + i);
                cell[i] = g->cell ? cpu_case_get(g->cell, (d * ROWS + row) * HIDDEN + i) : 0;
            }
            for (int64_t step = 0; step < STEPS; step++) {
                bool has_ended = step >= lengths[row];
                int64_t t = d == 0 || has_ended ? step : lengths[row] - 1 - step;
                if (!has_ended && g->gates == 4)
                    step_lstm(g, d, t, row, h, cell);
                else if (!has_ended)
                    step_gru(g, d, t, row, resets_after, h);
                int64_t at = ((t * 2 + d) * ROWS + row) * HIDDEN;
                for (int i = 0; i < HIDDEN; i++)
                    cpu_case_expect_near(cpu_case_get(&c->outputs[0], at + i), has_ended ? 0 : h[i],
                                         2e-5, at + i);
            }
            int64_t at = (d * ROWS + row) * HIDDEN;
            for (int i = 0; i < HIDDEN; i++) {
                cpu_case_expect_near(cpu_case_get(&c->outputs[1], at + i), h[i], 2e-5, at + i);
                if (g->cell)
                    cpu_case_expect_near(cpu_case_get(&c->outputs[2], at + i), cell[i], 2e-5,
                                         at + i);
            }
        }
}

Test(cpu_recurrent, lstm_with_peepholes_states_and_lengths_in_both_directions)
{
    cpu_case c = {.attributes = {graph_make_string("direction", "bidirectional")},
                  .attribute_count = 1};
    weights g = add_inputs(&c, 4);
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_LSTM, 3), STATUS_OK);
    expect_all(&c, &g, false);
    cpu_case_dispose(&c);
}

Test(cpu_recurrent, gru_resets_before_or_after_the_multiplication)
{
    for (int64_t after = 0; after < 2; after++) {
        cpu_case c = {.attributes = {graph_make_string("direction", "bidirectional"),
                                     graph_make_int("linear_before_reset", after)},
                      .attribute_count = 2};
        weights g = add_inputs(&c, 3);
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_GRU, 2), STATUS_OK);
        expect_all(&c, &g, after == 1);
        cpu_case_dispose(&c);
    }
}

/* X [rows, steps, input] with one input and one unit: H = tanh(x + h). */
Test(cpu_recurrent, rnn_of_layout_1_stores_rows_first)
{
    cpu_case c = {.attributes = {graph_make_int("layout", 1)}, .attribute_count = 1};
    cpu_case_input(&c, DTYPE_F32, DIMS(2, 2, 1), (double[]){0.25, 0.5, -0.25, 1});
    cpu_case_input(&c, DTYPE_F32, DIMS(1, 1, 1), (double[]){1});
    cpu_case_input(&c, DTYPE_F32, DIMS(1, 1, 1), (double[]){1});
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_RNN, 2), STATUS_OK);
    const double first[] = {tanh(0.25), tanh(-0.25)};
    const double last[] = {tanh(0.5 + first[0]), tanh(1 + first[1])};
    for (int64_t row = 0; row < 2; row++) {
        cpu_case_expect_near(cpu_case_get(&c.outputs[0], 2 * row), first[row], 1e-6, row);
        cpu_case_expect_near(cpu_case_get(&c.outputs[0], 2 * row + 1), last[row], 1e-6, row);
        cpu_case_expect_near(cpu_case_get(&c.outputs[1], row), last[row], 1e-6, row);
    }
    cpu_case_dispose(&c);
}

Test(cpu_recurrent, a_length_beyond_the_input_is_the_requests_fault)
{
    cpu_case c = {0};
    cpu_case_random(&c, DTYPE_F32, DIMS(2, 1, 1));
    cpu_case_random(&c, DTYPE_F32, DIMS(1, 1, 1));
    cpu_case_random(&c, DTYPE_F32, DIMS(1, 1, 1));
    cpu_case_random(&c, DTYPE_F32, DIMS(1, 2));
    cpu_case_input(&c, DTYPE_I32, DIMS(1), (double[]){3});
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_RNN, 1), STATUS_INVALID_ARGUMENT);
    cpu_case_dispose(&c);
}

static double round_to_8_bits(double x, double low, double high)
{
    double scale = (high - low) / 255, zero = nearbyint(-low / scale);
    return (nearbyint(x / scale) + zero - zero) * scale;
}

/* One step from states that lie between -2 and 1 gives what an LSTM gives from their roundings; the
 * range is that of all rows. */
Test(cpu_recurrent, a_rounded_lstm_sees_states_of_8_bits)
{
    const int64_t gates = 4 * HIDDEN;
    double states[2][ROWS * HIDDEN];
    for (int i = 0; i < ROWS * HIDDEN; i++) {
        states[0][i] = -2 + 3 * sqrt(i / (ROWS * HIDDEN - 1.0));
        states[1][i] = round_to_8_bits(states[0][i], -2, 1);
    }
    cpu_case c[2] = {0};
    for (int rounded = 0; rounded < 2; rounded++) {
        cpu_case *of = &c[rounded];
        cpu_case_random(of, DTYPE_F32, DIMS(1, ROWS, INPUT));
        cpu_case_random(of, DTYPE_F32, DIMS(1, gates, INPUT));
        cpu_case_random(of, DTYPE_F32, DIMS(1, gates, HIDDEN));
        cpu_case_random(of, DTYPE_F32, DIMS(1, 2 * gates));
        cpu_case_input(of, DTYPE_I32, DIMS(ROWS), (double[]){1, 1, 1});
        cpu_case_input(of, DTYPE_F32, DIMS(1, ROWS, HIDDEN), states[rounded]);
        graph_op op = rounded ? GRAPH_OP_LSTM : GRAPH_OP_ROUNDED_LSTM;
        cr_assert_eq(cpu_case_run(of, op, 3), STATUS_OK);
    }
    for (int64_t i = 0; i < ROWS * HIDDEN; i++)
        cpu_case_expect_near(cpu_case_get(&c[0].outputs[0], i), cpu_case_get(&c[1].outputs[0], i),
                             1e-6, i);
    cpu_case_dispose(&c[0]);
    cpu_case_dispose(&c[1]);
}
