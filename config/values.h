#ifndef CONFIG_VALUES_H
#define CONFIG_VALUES_H

#include "config/keys.h"
#include "config/origin.h"

/* What the readers of keys share: integers, strings, choices, names and members. */

/* Checks the key's range and sets its field. */
status config_set_integer(config *c, const config_key *k, const json_t *value,
                          const config_origin *o, const json_path *path) MUST_CHECK;

status config_set_number(config *c, const config_key *k, const json_t *value,
                         const config_origin *o, const json_path *path) MUST_CHECK;

/* A copy of a string that is not empty, in c->memory. `value` is a JSON string. */
status config_copy_string(config *c, const config_origin *o, const json_path *path,
                          const json_t *value, const char **out) MUST_CHECK;

/* The index in `choices`, which NULL ends. */
status config_read_choice(const char *const *choices, const json_t *value, const config_origin *o,
                          const json_path *path, int *out) MUST_CHECK;

/* Whether every member of the object `value` is one of `names`, which NULL ends. */
status config_check_members(json_t *value, const char *const *names, const config_origin *o,
                            const json_path *path) MUST_CHECK;

/* Whether a model or tenant may have that name: it is part of URLs and metric labels. */
bool config_is_name(const char *name, size_t bytes);

#endif
