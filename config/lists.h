#ifndef CONFIG_LISTS_H
#define CONFIG_LISTS_H

#include "config/config.h"
#include "config/origin.h"

/* Listeners and devices. Each takes one string or an array of them. The first value from an origin
 * replaces the list that stood there; the origin's further values are added. */

typedef enum config_listener_kind {
    CONFIG_LISTENER_PLAIN,
    CONFIG_LISTENER_TLS,
    CONFIG_LISTENER_HEALTH,
    CONFIG_LISTENER_ADMIN, /* or "unix:PATH" */
    CONFIG_LISTENER_GRPC,
    CONFIG_LISTENER_GRPC_TLS
} config_listener_kind;

/* "HOST:PORT", "[IPV6]:PORT", "*:PORT" or ":PORT". */
status config_set_listeners(config *c, const json_t *value, config_listener_kind kind,
                            config_origin *o, const json_path *path) MUST_CHECK;
/* "cpu" or "pjrt:PLUGIN.so". */
status config_set_devices(config *c, const json_t *value, config_origin *o,
                          const json_path *path) MUST_CHECK;

#endif
