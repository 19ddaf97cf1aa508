#ifndef CONFIG_SET_H
#define CONFIG_SET_H

#include "config/keys.h"
#include "config/origin.h"

/* One key from one JSON value. `value` is borrowed and not changed; strings are copied into
 * c->memory. The errors name file, line and path, or the flag. */
status config_set(config *c, const config_key *k, json_t *value, config_origin *o,
                  const json_path *path) MUST_CHECK;

/* The member `key` of the object `section`, or of the file itself if `section` is NULL. */
status config_set_member(config *c, const char *section, const char *key, json_t *value,
                         config_origin *o, const json_path *path) MUST_CHECK;

/* The key written "section.key", as in --set. */
status config_set_path(config *c, const char *path, json_t *value, config_origin *o) MUST_CHECK;

/* Whether keys "NAME.something" exist. */
bool config_is_section(const char *name);

#endif
