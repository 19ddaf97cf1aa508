#ifndef DEVICES_CPU_RECURRENT_RECURRENT_H
#define DEVICES_CPU_RECURRENT_RECURRENT_H

#include "devices/cpu/ops/op.h"

/* RNN, GRU and LSTM. Only the files of this folder include this. */

#define RECURRENT_ACTIVATIONS_MAX 3

typedef enum recurrent_curve {
    RECURRENT_AFFINE,
    RECURRENT_ELU,
    RECURRENT_HARD_SIGMOID,
    RECURRENT_LEAKY_RELU,
    RECURRENT_RELU,
    RECURRENT_SCALED_TANH,
    RECURRENT_SIGMOID,
    RECURRENT_SOFTPLUS,
    RECURRENT_SOFTSIGN,
    RECURRENT_TANH,
    RECURRENT_THRESHOLDED_RELU,
} recurrent_curve;

typedef struct recurrent_activation {
    recurrent_curve curve;
    float alpha, beta;
} recurrent_activation;

/* The transpose of `n` rows of a weight matrix [.., k]: of one direction, and of some gates. */
typedef struct recurrent_matrix {
    const float *packed; /* NULL: the weights are not constant, or not packed */
    int input;           /* of the node */
    size_t offset;       /* elements before it */
    size_t k, n;
} recurrent_matrix;

typedef struct recurrent_direction {
    bool is_reverse;
    recurrent_matrix project;     /* input to gates */
    recurrent_matrix recur[2];    /* hidden state to gates; GRU: to z and r, then to h */
    recurrent_activation f, g, h; /* as the operators' definitions name them */
} recurrent_direction;

/* Offsets of the pieces of scratch, in bytes. */
typedef struct recurrent_scratch {
    size_t hidden, cell, bias, spare, inputs, gates, bytes;
} recurrent_scratch;

typedef struct recurrent_state {
    int64_t steps, rows, input, hidden; /* sizes */
    int64_t gate_count;
    int64_t chunk_steps; /* whose input is projected at once */
    bool is_batch_first;
    float clip; /* 0: none */
    bool couples_forget, resets_after;
    bool rounds_states; /* to 8 bits: penstock.LSTM */
    int direction_count;
    recurrent_direction directions[2];
    recurrent_scratch scratch;
} recurrent_state;

/* One direction while it runs. */
typedef struct recurrent_run {
    const cpu_call *call;
    const recurrent_state *state;
    const recurrent_direction *direction;
    float *hidden, *cell;   /* [rows, hidden] */
    float *spare;           /* [rows, hidden] */
    uint8_t *bytes;         /* [rows, hidden]: states in 8 bits */
    const float *bias;      /* [gates + 1, hidden]: the input's and the state's added, then GRU's
                               bias of h behind the reset gate */
    const float *peepholes; /* [3, hidden]: i, o, f; or NULL */
    const int64_t *lengths; /* [rows] */
} recurrent_run;

/* activation.c: finds the activations of direction `direction`. STATUS_UNSUPPORTED: a name that the
 * operator's definition does not have. */
status recurrent_find_activations(const graph_node *node, int direction,
                                  recurrent_direction *out) MUST_CHECK;
/* In place. */
void recurrent_activate(const kernels *k, const recurrent_activation *a, float *x, size_t count);

/* cell.c: one time step of all rows. `gates` [rows, gates, hidden] holds the input's part, bias
 * included, and is overwritten. Rows whose length is at most `step` keep their state. */
void recurrent_step_rnn(const recurrent_run *r, int64_t step, float *gates);
void recurrent_step_gru(const recurrent_run *r, int64_t step, float *gates);
void recurrent_step_lstm(const recurrent_run *r, int64_t step, float *gates);

/* out [rows, stride] += a [rows, k] x matrix; out + bias instead, where bias is not NULL. */
void recurrent_multiply(const cpu_call *c, const recurrent_matrix *m, int64_t rows, const float *a,
                        const float *bias, float *out, size_t out_stride);

#endif
