#ifndef MODELS_REPOSITORY_COMMANDS_H
#define MODELS_REPOSITORY_COMMANDS_H

#include "models/repository/order.h"

/* The loads and unloads that wait for the loading thread, and the one it works on. Bounded: orders
 * for the same thing share a command, and one for which nobody waits any more leaves the queue. No
 * lock: the repository's mutex guards it. */

typedef struct repository_command {
    struct repository_command *next;
    bool is_load;
    char name[128];
    char *config;             /* what to load it with, owned; or NULL */
    repository_order *orders; /* who waits for it, latest first */
} repository_command;

typedef struct repository_commands {
    repository_command *first, *last; /* waiting */
    repository_command *running;
    int count, count_max; /* waiting */
} repository_commands;

/* `config`: copied, or NULL. The order joins the last command for that name, if that is the same
 * and has not begun; else it becomes a command. STATUS_RESOURCE_EXHAUSTED: count_max wait, or two
 * of that name. STATUS_NOT_FOUND: no model's name is that long. STATUS_OUT_OF_MEMORY. */
status repository_commands_add(repository_commands *c, bool is_load, const char *name,
                               const char *config, repository_order *o) MUST_CHECK;

/* The first one becomes the running one; none must run. NULL: none waits. */
const repository_command *repository_commands_begin(repository_commands *c);

/* Ends the running one. Returns its orders, which the caller tells; linked by `next`. */
repository_order *repository_commands_finish(repository_commands *c);

/* Takes the order out of its command. Returns false if it has none any more: somebody tells it, or
 * has. `*is_running_unwanted`: nobody waits for the running command now. */
bool repository_commands_cancel(repository_commands *c, repository_order *o,
                                bool *is_running_unwanted);

#endif
