#ifndef CONFIG_MODELS_H
#define CONFIG_MODELS_H

#include "config/config.h"
#include "config/origin.h"

/* The key "models" and the flag --model. */

/* Adds a model, or replaces the one of that name. `precision` NULL: none given. Strings are
 * copied. A model that two flags name is an error. */
status config_add_model(config *c, const char *name, size_t name_bytes, const char *path,
                        const device_precision *precision, const config_origin *o,
                        const json_path *where) MUST_CHECK;

/* {"NAME": "PATH" or {"path": ..., "precision": ...}, ...} */
status config_set_models(config *c, json_t *value, const config_origin *o,
                         const json_path *path) MUST_CHECK;

/* The key "readiness": "all", "started", "any", or an array of model names. */
status config_set_readiness(config *c, const json_t *value, const config_origin *o,
                            const json_path *path) MUST_CHECK;
/* What it was set to. */
json_t *config_readiness_json(const config *c);

#endif
