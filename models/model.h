#ifndef MODELS_MODEL_H
#define MODELS_MODEL_H

#include <stdatomic.h>

#include "devices/device.h"
#include "models/usage.h"

/* One served version of a model. Constant once it is ready: whoever serves it holds a
 * `const model *` and a reference. What changes while it serves lies behind pointers, each with its
 * writers; other rooms keep what they know of a model in tables of their own, by `index`, and
 * compare `serial`, because an index is used again after its model is unloaded. */

#define MODEL_INDEX_MAX 1024  /* models loaded at once */
#define MODEL_TENSORS_MAX 64  /* inputs, and outputs, of a model */
#define MODEL_BUCKETS_MAX 256 /* (batch, sequence) pairs */
#define MODEL_AXIS_MAX 64     /* bucket sizes of one axis */

typedef struct model_tensor {
    const char *name;
    dtype dtype;
    int rank;
    /* Per dim: a size, or -1 where it varies. `batch_axis` and `sequence_axis` are -1 when the
     * tensor has none; a batch axis is always axis 0. */
    int64_t dims[TENSOR_RANK_MAX];
    const char *const *dim_names; /* in the file, for people: NULL where a dim has none; or NULL */
    int batch_axis, sequence_axis;
    /* Inputs only. */
    double pad_value; /* fills padding: tokens beyond a row's length */
    bool is_mask;     /* 1 at real tokens, 0 at padding */
    bool is_optional; /* a request may leave it out: then filled with default_value (a mask with
                         1) */
    double default_value;
    int64_t id_limit; /* token ids: rows of the table that they index; every device accepts 0 to
                         id_limit - 1. 0: the input holds no token ids */
} model_tensor;

/* What a property of the model rests on. */
typedef enum model_basis {
    MODEL_BASIS_NONE,      /* there is nothing to decide */
    MODEL_BASIS_DECLARED,  /* model.json */
    MODEL_BASIS_PROVED,    /* the graph, operator by operator (graph/independence) */
    MODEL_BASIS_PROBED,    /* experiments (models/batching/experiment.h) */
    MODEL_BASIS_UNDECIDED, /* neither proved nor disproved: taken as no */
} model_basis;
/* "", "declared", "proved", "probed", "undecided". Static. */
const char *model_basis_name(model_basis basis);

/* How requests of this model may be batched: found at load (models/batching/probe.h), or declared
 * in model.json. */
typedef struct model_batching {
    bool can_batch; /* rows do not influence each other */
    bool can_pad;   /* padding does not influence a row's results */
    model_basis batch_basis, pad_basis;
    int64_t batch_max;       /* rows of the largest bucket */
    int64_t sequence_max;    /* longest row; 0 when there is no sequence axis */
    uint64_t queue_delay_ns; /* batching delay: how long an idle device may wait for more rows */
    int64_t queue_rows_max;  /* most rows that may wait */
} model_batching;

typedef struct model_bucket {
    device_bucket shape;
    device_program *
        *programs;     /* one for each device of the server; NULL: that device does not run it */
    int64_t sequences; /* packed (models/batching/packed_buckets.h): sequences in all rows, at most;
                          0: one in each row */
} model_bucket;

/* May rows of a batch hold several sequences each (models/batching/packed_buckets.h)? */
typedef enum model_packing {
    MODEL_PACKING_AUTO, /* where the attention was recognised and packing is faster */
    MODEL_PACKING_NEVER,
    MODEL_PACKING_ALWAYS /* where it computes fewer tokens, even if it is not faster */
} model_packing;

/* Why a batch ran on the CPU although the server has another device. */
typedef enum model_fallback {
    MODEL_FALLBACK_DEVICE_FAILED, /* retried after STATUS_UNAVAILABLE */
    MODEL_FALLBACK_NO_DEVICE,     /* no other device is healthy and has a program for it */
    MODEL_FALLBACK_SOONER,        /* the CPU was expected to finish first */
    MODEL_FALLBACK_COUNT
} model_fallback;
/* "device_failed", ... Static. */
const char *model_fallback_name(model_fallback reason);

typedef enum model_compile_phase {
    MODEL_COMPILE_WARM_UP,  /* before ready */
    MODEL_COMPILE_EXACT,    /* after ready, on the CPU: models that cannot be padded, at a request's
                               own shape */
    MODEL_COMPILE_DEFERRED, /* after ready, on the CPU, off the request path: buckets that traffic
                               wants (models/start/deferred_buckets.h) */
    MODEL_COMPILE_JOINED,   /* after ready, on the loading thread: for a device that came later */
    MODEL_COMPILE_SERVING,  /* after ready, on a device with static shapes: never, by design */
    MODEL_COMPILE_COUNT
} model_compile_phase;
/* "warm_up", "exact", "deferred", "joined", "serving". Static. */
const char *model_compile_phase_name(model_compile_phase phase);

/* Counts since load. Any thread reads; relaxed. */
typedef struct model_counters {
    /* Written by batcher/, at the end of a batch. */
    _Atomic uint64_t batches, batch_rows; /* mean batch size = batch_rows / batches */
    _Atomic uint64_t packed_batches;      /* of them, those whose rows held several sequences */
    /* Tokens of the requests, and tokens computed with padding; a model without a sequence axis
     * counts rows. Waste = 1 - real / computed. */
    _Atomic uint64_t real_tokens, computed_tokens;
    _Atomic uint64_t fallbacks[MODEL_FALLBACK_COUNT];
    _Atomic uint64_t isolations; /* batches repeated member by member to find the one at fault */
    /* Written by warm-up, exact programs and devices (device_model.serving_compiles). */
    _Atomic uint64_t compiles[MODEL_COMPILE_COUNT];
    _Atomic uint64_t cache_loads; /* programs that the compile cache had */
} model_counters;

typedef struct model model;
typedef struct model_text model_text;

/* Who still uses a loaded version. Any thread, by model_retain() and model_release(). */
typedef struct model_references {
    _Atomic int64_t count;
    /* Set by the owner before anybody else has a reference. The last release calls on_unused, on
     * its own thread; NULL: nothing is called. */
    void (*on_unused)(void *owner, model *m);
    void *owner;
    model *model;
} model_references;

typedef struct model_label {
    const char *name; /* "stable" */
    int64_t version;
} model_label;

struct model {
    const char *name;
    int64_t version;
    int index;            /* dense number among loaded models; used again after an unload */
    uint64_t serial;      /* never used again; 0: not served yet */
    const char *platform; /* "onnx", "hugging_face", "stablehlo": for KServe metadata */
    const char *folder;
    uint64_t load_ns, warm_up_ns;

    /* What it computes, and what devices compile. */
    graph *graph;
    model_tensor inputs[MODEL_TENSORS_MAX], outputs[MODEL_TENSORS_MAX];
    int input_count, output_count;
    device *const *devices; /* the CPU is the last */
    int device_count;
    graph_budget budget; /* what its programs may cost; `cancel` only while it is loaded */
    /* models/start/start_budget.h: while it is loaded; NULL: no limit, or it is ready. */
    struct start_budget *start;
    device_model on_device;
    device_model on_packed;         /* for packed buckets */
    device_program *weights_holder; /* keeps the CPU's packed weights alive; or NULL */

    /* Text as input (models/text/model_text.h); NULL: it takes none, and text_note says why. */
    struct model_text *text;
    const char *text_note;

    /* How requests share batches. */
    model_batching batching;
    const char *batching_note; /* what was found about batching, for people; "" when nothing was */
    /* Requests run whole (models/whole/whole.h): why, and the inputs' shapes, without data, at
     * which the model was tried; NULL where it is not tried. */
    const char *whole_note;
    const tensor *whole_inputs;
    /* models/whole/free_sizes.h: what was found of their sizes; NULL: nothing was tried, or the
     * graph is from the cache. */
    const struct free_sizes *whole_sizes;
    model_packing packing;
    /* Buckets that a device has no memory for are left out there; else it runs none of them. */
    bool fits;
    /* What devices with static shapes know of the graph; NULL: nothing, or there are none. */
    struct encoder *encoder;
    /* The same, or NULL: a row holds one sequence, packing_note says why;
     * models/batching/packed_buckets.h. */
    struct encoder *packed_encoder;
    const char *version_policy; /* as Triton writes it in JSON; NULL: all */
    const char *packing_note;
    model_bucket buckets[MODEL_BUCKETS_MAX]; /* ascending by sequence, then batch; the packed
                                                ones last, in the same order */
    int bucket_count;
    int64_t sequence_buckets[MODEL_AXIS_MAX], batch_buckets[MODEL_AXIS_MAX]; /* ascending */
    int sequence_bucket_count, batch_bucket_count;

    /* How they are scheduled. */
    uint64_t slo_ns; /* latency objective, 0: none */
    int priority;    /* of requests that name none; 0 is the highest */
    int weight;      /* fair share of the devices; 0 counts as 1 */

    arena memory; /* owns the strings and the buckets' program lists */

    /* What changes while the model serves. */
    model_references *references;
    model_usage *usage; /* models/usage.h: written by workers */
    model_counters *counters;
    /* models/batching/exact_programs.h: written by workers; NULL: the model has buckets. */
    struct exact_programs *exact_programs;
    /* models/start/deferred_buckets.h: written by workers and the loading thread; NULL: every
     * bucket was made before ready. */
    struct deferred_buckets *deferred;
    /* models/start/late_programs.h: written by the loading thread; NULL: every device was there
     * when the model was loaded. */
    struct late_programs *late;
    /* models/loading/kept_graph.h: written by the loading thread; NULL: nothing is kept. */
    struct kept_graph *kept;
    /* models/latency.h: written by warm-up, then by workers; NULL: nothing is known yet. */
    struct latency *latency;
    /* models/planner.h: lengths of requested rows, written on admission; or NULL. */
    struct length_histogram *lengths;
};

/* Nothing may be padded: a batch is one request, with its own rows and length. */
static inline bool model_is_exact(const model *m)
{
    return !m->batching.can_batch || (m->batching.sequence_max > 0 && !m->batching.can_pad);
}

/* Each request runs alone, at whatever shape it has, and its answer carries its own shape. */
static inline bool model_is_whole(const model *m)
{
    return m->on_device.is_whole;
}

/* Zeroed, with counters of 0 and one reference. NULL when memory is out. */
model *model_create(void);
/* Frees what model_create() made, not what was added. Only the creator's reference may be left. */
void model_destroy(model *m);

/* Any thread. The last release calls `on_unused`. */
void model_retain(const model *m);
void model_release(const model *m);

/* Dims of an input or output for `rows` rows of `length` tokens. False: one does not follow from
 * them. */
bool model_tensor_dims(const model *m, bool is_output, int index, int64_t rows, int64_t length,
                       int64_t dims[TENSOR_RANK_MAX]) MUST_CHECK;

#endif
