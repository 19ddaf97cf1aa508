#ifndef SERVER_HTTP_LIBRARY_H
#define SERVER_HTTP_LIBRARY_H

#include <h2o.h>

#include "server/options/options.h"

/* What libh2o is told before any loop runs: which functions of ours replace its own, its limits,
 * and that every path of every host is ours. The caller disposes of `config` by
 * h2o_config_dispose(). */
void library_configure(h2o_globalconf_t *config, const server_options *o);

#endif
