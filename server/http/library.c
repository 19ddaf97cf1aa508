#include "server/http/library.h"

#include "server/connection/library_calls.h"
#include "server/connection/relief.h"
#include "server/http/handshake.h"
#include "server/http1/handler.h"
#include "server/http1/library_errors.h"
#include "server/http1/state.h"
#include "server/http1/transport.h"

void library_configure(h2o_globalconf_t *config, const server_options *o)
{
    http1_install_hooks(o->limits.body_bytes_max);
    library_calls_install(&(library_calls_hooks){relief_on_shortage, connections_read_bytes_max});
    handshake_install();
    h2o_config_init(config);
    config->server_name = h2o_iovec_init(H2O_STRLIT("penstock"));
    /* One more than the limit, which handler.c checks: of a chunked body the library refuses what
     * is as large as its own. */
    config->max_request_entity_size = o->limits.body_bytes_max + 1;
    /* Ours are shorter (http1/check.c): the library has one for idle, head and body together. */
    config->http1.req_timeout = o->timeouts.idle_ms + o->timeouts.request_ms + 60000;
    config->http1.upgrade_to_http2 = 0; /* HTTP/2 is ours */
    config->handshake_timeout = o->timeouts.handshake_ms;
    /* Bodies stay in memory: the library would move 32 MiB and more to the temporary folder. */
    h2o_socket_buffer_mmap_settings.threshold = SIZE_MAX;
    h2o_hostconf_t *host =
        h2o_config_register_host(config, h2o_iovec_init(H2O_STRLIT("default")), 65535);
    h2o_pathconf_t *path = h2o_config_register_path(host, "/", 0);
    http1_configure(path);
    http1_transport_configure(path);
    library_errors_configure(host);
}
