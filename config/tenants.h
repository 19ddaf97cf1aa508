#ifndef CONFIG_TENANTS_H
#define CONFIG_TENANTS_H

#include "config/config.h"
#include "config/origin.h"

/* The key "tenants": {"NAME": {"key": ..., "weight": ..., ...}, ...} replaces all tenants. */
#define CONFIG_MASKED_KEY "(masked)" /* printed in place of a tenant's key; refused when read */

status config_set_tenants(config *c, json_t *value, const config_origin *o,
                          const json_path *path) MUST_CHECK;

#endif
