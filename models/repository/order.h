#ifndef MODELS_REPOSITORY_ORDER_H
#define MODELS_REPOSITORY_ORDER_H

#include <stdbool.h>

#include "base/status.h"

/* A load or unload that somebody asked for. It lies in the caller's memory and is the repository's
 * from repository_load() or repository_unload() until `on_done` is called: once, on the loading
 * thread or inside repository_cancel(). */
typedef struct repository_order {
    void (*on_done)(struct repository_order *o, status result, const char *error);
    /* The repository's. */
    struct repository_order *next, **at; /* of the same command; what points to this one */
    struct repository_command *command;  /* NULL: on_done has been called, or is about to be */
} repository_order;

#endif
