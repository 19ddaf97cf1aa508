#ifndef SERVER_PROTOCOL_INFER_INPUTS_H
#define SERVER_PROTOCOL_INFER_INPUTS_H

#include "server/protocol/infer.h"

/* Where the inputs of a request go that has one job: its tensors, or the texts that stand in their
 * place. The same for every protocol that names its inputs; only the elements are read by each. */
typedef struct infer_inputs {
    infer_request *request;
    const infer_context *context;
    job *job;
    uint64_t region_bytes; /* of inputs so far */
    bool is_given[MODEL_TENSORS_MAX];
    bool has_text, has_pair;
} infer_inputs;

/* One input that is being read. */
typedef struct infer_slot {
    const char *name; /* the model's */
    int index;        /* of its inputs; -1: a text */
    tensor *data;     /* to be filled, once it has its shape */
    tensor text;
} infer_slot;

/* Takes a job from `c`, which is among r->jobs afterwards. STATUS_UNAVAILABLE: there is none. */
status infer_inputs_begin(infer_inputs *in, infer_request *r, const infer_context *c) MUST_CHECK;

/* The input of that name. STATUS_INVALID_ARGUMENT: there is none, or it came before. */
status infer_inputs_open(infer_inputs *in, json_string name, infer_slot *out) MUST_CHECK;

/* Its type and shape, checked: slot->data has them, and memory for the elements may be allocated.
 * STATUS_INVALID_ARGUMENT, STATUS_TOO_LARGE. */
status infer_inputs_shape(infer_inputs *in, infer_slot *slot, dtype type, int rank,
                          const int64_t *dims) MUST_CHECK;

/* Its elements, from a region. STATUS_INVALID_ARGUMENT, STATUS_TOO_LARGE: more than
 * limits.decompressed_bytes_max of all inputs. */
status infer_inputs_read_region(infer_inputs *in, infer_slot *slot,
                                const infer_region *region) MUST_CHECK;

/* Its elements are there. */
status infer_inputs_close(infer_inputs *in, infer_slot *slot) MUST_CHECK;

/* All inputs are there: what is missing is filled in, or an error; the job gets its outputs. */
status infer_inputs_end(infer_inputs *in) MUST_CHECK;

#endif
