#ifndef SERVER_HTTP_LIBRARY_ERRORS_H
#define SERVER_HTTP_LIBRARY_ERRORS_H

#include <h2o.h>

/* Gives the responses that libh2o makes by itself (400, 413, 417) a body in our form. Once, at
 * configuration. */
void library_errors_configure(h2o_hostconf_t *host);

#endif
