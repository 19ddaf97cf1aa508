#ifndef MODELS_REPOSITORY_ENTRY_H
#define MODELS_REPOSITORY_ENTRY_H

#include <stdint.h>

typedef enum model_state {
    MODEL_LOADING,
    MODEL_READY,
    MODEL_FAILED,
    MODEL_UNLOADED,
    MODEL_IGNORED, /* it stands in the repository's folder, and is no model */
    MODEL_STATES
} model_state;

/* One version of a model as the repository knows it, served or not. */
typedef struct repository_entry {
    char name[128];
    int64_t version;
    model_state state;
    char reason[256]; /* why it is not ready; of a ready one: why a reload failed */
} repository_entry;

#endif
