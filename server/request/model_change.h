#ifndef SERVER_REQUEST_MODEL_CHANGE_H
#define SERVER_REQUEST_MODEL_CHANGE_H

#include "server/request/request.h"

/* A load or unload of the model r->route.name that a request waits for. */

/* What came of it: answers the request, which has not ended. */
typedef void (*model_change_done)(request *r, status result, const char *error);

/* Orders it, a load with the settings `config` (repository_load_with(); or NULL); `done` is called
 * on the loop when the loading thread is done, unless the request has ended by then. Failures of
 * repository_load() and repository_unload(); STATUS_OUT_OF_MEMORY. */
status model_change_begin(request *r, bool is_load, const char *config,
                          model_change_done done) MUST_CHECK;

#endif
