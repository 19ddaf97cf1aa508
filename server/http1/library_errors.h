#ifndef SERVER_HTTP1_LIBRARY_ERRORS_H
#define SERVER_HTTP1_LIBRARY_ERRORS_H

#include <h2o.h>

/* Replaces the bodies of the responses that libh2o makes by itself (400, 413, 417) by ours. Once,
 * at configuration. */
void library_errors_configure(h2o_hostconf_t *host);

#endif
