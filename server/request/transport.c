#include "server/request/transport.h"

#include <assert.h>
#include <stdlib.h>

void request_connection_release(request_connection *c)
{
    assert(c->references > 0);
    if (--c->references == 0) {
        budget_close(&c->held);
        free(c->certificate_names);
        free(c);
    }
}
