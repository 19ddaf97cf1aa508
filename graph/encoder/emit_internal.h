#ifndef GRAPH_ENCODER_EMIT_INTERNAL_H
#define GRAPH_ENCODER_EMIT_INTERNAL_H

#include "graph/encoder/encoder.h"

/* What emit.c and encoder_emit_output.c share; nobody else includes it. */

#define EMIT_BIASES_MAX 4

typedef struct emitted_bias {
    int64_t window;
    graph_value_index value;
} emitted_bias;

typedef struct emitted_rotary {
    const encoder_rotary *rotary;
    graph_value_index cosine, sine;
} emitted_rotary;

typedef struct encoder_emitter {
    graph *g;
    const encoder *e;
    graph_value_index ids, mask, types; /* graph inputs; mask and types may be GRAPH_NO_VALUE */
    graph_value_index positions;        /* i64 [S]: 0 .. S-1 */
    graph_value_index distance_rows;    /* i64 [S,S]: encoder_distance_row() of query and key */
    graph_value_index distance_states;  /* f32 [2 * span,hidden]: the table, normalised */
    emitted_bias biases[EMIT_BIASES_MAX];
    int bias_count;
    emitted_rotary rotaries[EMIT_BIASES_MAX];
    int rotary_count;
} encoder_emitter;

graph_value_index encoder_emit_linear(const encoder_emitter *m, const encoder_linear *l,
                                      graph_value_index x);
graph_value_index encoder_emit_norm(const encoder_emitter *m, const encoder_norm *n,
                                    graph_value_index x);
/* encoder_emit_output.c: from hidden states [B,S,hidden]. */
graph_value_index encoder_emit_output(const encoder_emitter *m, const encoder_output *o,
                                      graph_value_index hidden);

#endif
