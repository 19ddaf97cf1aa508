/* penstock serve: reads the configuration, opens the HTTP edge, starts devices and models behind
 * it, then serves until a signal ends it. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/serve_backend.h"
#include "config/load.h"
#include "config/print.h"
#include "server/server.h"

static int fail(const char *what)
{
    log_error("server", "%s: %s", what, status_message());
    return 1;
}

static int serve(const config *c)
{
    server *edge;
    serve_backend *backend;
    server_block_signals();
    if (server_start(&c->server, &edge))
        return fail("HTTP edge");
    if (serve_backend_start(c, edge, &backend)) {
        server_release(edge);
        return fail("devices and models");
    }
    server_run(edge);
    serve_backend_stop(backend);
    server_release(edge);
    return 0;
}

int command_serve(int argc, char **argv)
{
    config c;
    /* SageMaker runs an image with the argument `serve`, which may be there twice then. */
    int skipped = argc > 1 && strcmp(argv[1], "serve") == 0 ? 2 : 1;
    if (config_load(&c, argc - skipped, argv + skipped)) {
        fprintf(stderr, "penstock serve: %s\nSee penstock serve --help.\n", status_message());
        return 2;
    }
    int code;
    if (c.wants_help) {
        config_print_help(stdout);
        code = 0;
    } else if (c.wants_print) {
        code = config_print(&c, stdout) ? 1 : 0;
    } else {
        log_configure(c.log_level, c.log_format);
        code = serve(&c);
    }
    config_dispose(&c);
    return code;
}
