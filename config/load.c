#include "config/load.h"

#include <stdlib.h>

#include "config/file.h"
#include "config/flags.h"

/* What needs more than one key to check. */
static status check_whole(const config *c)
{
    int served = 0;
    for (int i = 0; i < c->server.listener_count; i++)
        served += !c->server.listeners[i].is_health && !c->server.listeners[i].is_admin;
    if (served == 0)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "no address to listen on: set server.listen or server.listen_tls");
    bool has_certificate = c->server.tls.certificate_file != NULL,
         has_key = c->server.tls.key_file != NULL;
    if (has_certificate != has_key)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "tls.%s is missing: a certificate and its key go together",
                           has_certificate ? "key_file" : "certificate_file");
    if (c->server.tls.needs_client_certificate && c->server.tls.client_ca_file == NULL)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "tls.require_client_certificate: needs tls.client_ca_file");
    for (int i = 0; i < c->server.listener_count; i++)
        if (c->server.listeners[i].is_tls && !has_certificate)
            return status_fail(
                STATUS_INVALID_ARGUMENT,
                "server.listen_tls, server.grpc_tls: need tls.certificate_file and tls.key_file "
                "(--tls-certificate, --tls-key)");
    if (c->repository.folder == NULL && c->repository.model_count == 0 && !c->wants_print)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "nothing to serve: give --repository DIR or --model NAME=PATH, or set "
                           "repository or models in the file");
    return STATUS_OK;
}

/* Platforms that start containers say in PORT where to listen: on every address. It stands in the
 * place of the default, before the file and the flags. */
static status read_environment(config *c)
{
    const char *port = getenv("PORT");
    char *end;
    if (port == NULL || port[0] == 0)
        return STATUS_OK;
    long number = strtol(port, &end, 10);
    if (*end != 0 || end == port || number < 0 || number > 65535)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "the environment variable PORT is \"%s\", which is no port", port);
    c->server.listeners[0].host = "*";
    c->server.listeners[0].port = (uint16_t)number;
    return STATUS_OK;
}

status config_load(config *c, int argc, char *const *argv)
{
    config_default(c);
    status s = config_scan_flags(c, argc, argv);
    if (!s && c->wants_help)
        return STATUS_OK;
    if (!s)
        s = read_environment(c);
    if (!s && c->file != NULL)
        s = config_read_file(c, c->file);
    if (!s)
        s = config_apply_flags(c, argc, argv);
    if (!s)
        s = check_whole(c);
    if (s)
        config_dispose(c);
    return s;
}
