#include "config/load.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
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

/* NULL: it is not set, or empty. */
static const char *find(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != 0 ? value : NULL;
}

static bool is_set(const char *name)
{
    const char *value = find(name);
    return value != NULL && (strcasecmp(value, "true") == 0 || strcmp(value, "1") == 0);
}

static status read_port(config *c, const char *name)
{
    const char *text = find(name);
    char *end;
    if (text == NULL)
        return STATUS_OK;
    long number = strtol(text, &end, 10);
    if (*end != 0 || end == text || number < 0 || number > 65535)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "the environment variable %s is \"%s\", which is no port", name, text);
    c->server.listeners[0].host = "*";
    c->server.listeners[0].port = (uint16_t)number;
    return STATUS_OK;
}

static status read_path(const char *name, const char **out)
{
    const char *text = find(name);
    if (text != NULL && text[0] != '/')
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "the environment variable %s is \"%s\", which is no path", name, text);
    if (text != NULL)
        *out = text;
    return STATUS_OK;
}

/* SageMaker speaks of a limit on what a batch transform sends at once. */
static status read_payload(config *c)
{
    const char *name = "SAGEMAKER_MAX_PAYLOAD_IN_MB", *text = find(name);
    char *end;
    if (text == NULL)
        return STATUS_OK;
    long long number = strtoll(text, &end, 10);
    if (*end != 0 || number < 0 || number > 1 << 20)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "the environment variable %s is \"%s\", which is no number of megabytes",
                           name, text);
    if (number > 0) /* 0: SageMaker sets none */
        c->server.limits.body_bytes_max = (size_t)number << 20;
    return STATUS_OK;
}

/* What platforms that start containers say in the environment (docs/platforms.md): where to listen,
 * and which paths to serve. It takes the place of the defaults, before the file and the flags. */
static status read_environment(config *c)
{
    status s = read_port(c, "PORT");
    if (!s)
        s = read_port(c, "SAGEMAKER_BIND_TO_PORT");
    if (!s)
        s = read_port(c, "AIP_HTTP_PORT");
    if (!s)
        s = read_path("AIP_HEALTH_ROUTE", &c->server.health_route);
    if (!s)
        s = read_path("AIP_PREDICT_ROUTE", &c->server.predict_route);
    if (!s)
        s = read_payload(c);
    if (is_set("SAGEMAKER_MULTI_MODEL"))
        c->server.repository_control = true; /* the platform loads and unloads */
    return s;
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool is_number(const char *name)
{
    return name[0] != 0 && strspn(name, "0123456789") == strlen(name);
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

/* Does the folder hold one model, by its file or by its versions? Else it is one of models. */
static bool is_model(const char *path)
{
    DIR *folder = opendir(path);
    bool found = false;
    for (struct dirent *e; folder != NULL && !found && (e = readdir(folder)) != NULL;)
        found = is_number(e->d_name) || ends_with(e->d_name, ".onnx") ||
                ends_with(e->d_name, ".mlir") || strcmp(e->d_name, "config.json") == 0 ||
                strcmp(e->d_name, "model.json") == 0 || ends_with(e->d_name, ".mlirbc");
    if (folder != NULL)
        closedir(folder);
    return found;
}

static bool is_empty(const char *path)
{
    DIR *folder = opendir(path);
    int count = 0;
    for (struct dirent *e; folder != NULL && count == 0 && (e = readdir(folder)) != NULL;)
        count += e->d_name[0] != '.';
    if (folder != NULL)
        closedir(folder);
    return count == 0;
}

static status serve_folder(config *c, const char *path)
{
    const char *name = find("MODEL_NAME"),
               *kept = arena_copy_string(&c->memory, path, strlen(path));
    if (kept == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the configuration");
    if (is_model(path)) {
        c->model_list[0] =
            (repository_model_options){.name = name != NULL ? name : "model", .path = kept};
        c->repository.models = c->model_list;
        c->repository.model_count = 1;
    } else {
        c->repository.folder = kept;
    }
    return STATUS_OK;
}

/* Where a URI of Vertex AI is mounted, if it is: gs://BUCKET/PATH as /gcs/BUCKET/PATH. */
static bool find_storage(char *path, size_t bytes)
{
    const char *uri = find("AIP_STORAGE_URI");
    if (uri == NULL)
        return false;
    if (strncmp(uri, "gs://", 5) == 0)
        snprintf(path, bytes, "/gcs/%s", uri + 5);
    else
        snprintf(path, bytes, "%s", strncmp(uri, "file://", 7) == 0 ? uri + 7 : uri);
    if (is_folder(path))
        return true;
    log_warning("config", "AIP_STORAGE_URI is %s, which is not mounted: copy it, or mount it at %s",
                uri, path);
    return false;
}

/* If nothing names a model: the first of the platforms' folders that is there. */
static status find_models(config *c)
{
    char path[4096];
    if (c->repository.folder != NULL || c->repository.model_count > 0)
        return STATUS_OK;
    if (is_set("SAGEMAKER_MULTI_MODEL")) {
        c->repository.folder = "/opt/ml/models"; /* the platform asks for what it puts there */
        c->repository.readiness = (repository_readiness){.kind = READINESS_LIST};
        return STATUS_OK;
    }
    if (find_storage(path, sizeof path))
        return serve_folder(c, path);
    static const char *const folders[] = {"/opt/ml/model", "/mnt/models"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (is_folder(folders[i]) && !is_empty(folders[i]))
            return serve_folder(c, folders[i]);
    const char *last = find("PENSTOCK_REPOSITORY"); /* the image's own */
    return last != NULL ? serve_folder(c, last) : STATUS_OK;
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
    if (!s && !c->wants_print)
        s = find_models(c);
    if (!s)
        s = check_whole(c);
    if (s)
        config_dispose(c);
    return s;
}
